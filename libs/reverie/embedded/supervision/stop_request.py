"""Stops the supervisor of a home folder from another process: the work of `reverie down`."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from reverie.domain.core.errors import Unavailable
from reverie.embedded.home import Home, existing_home, read_run_file
from reverie.embedded.lock import is_home_locked
from reverie.embedded.processes import is_alive, is_running, wait_until

POLL_SECONDS = 0.1


def stop_supervisor(root: Path, timeout: float) -> int | None:
    """Stops the supervisor of a home folder and waits until all its processes have ended.

    Returns its process id, or None if none runs. Raises `Unavailable` if it still runs after
    `timeout`, or belongs to another user.
    """
    home = existing_home(root)
    if home is None or not is_home_locked(home):
        return None
    signalled: list[int] = []
    if not wait_until(lambda: _has_stopped(home, signalled), timeout, POLL_SECONDS):
        holder = f"process {signalled[0]}" if signalled else "whoever holds its folder"
        raise Unavailable("Reverie", f"{holder} did not end in time: see {home.logs}")
    return signalled[0] if signalled else None


def _has_stopped(home: Home, signalled: list[int]) -> bool:
    """Whether the folder is unlocked and its last owner has ended. Signals that owner once, when
    known."""
    if not is_home_locked(home):
        return not any(map(is_alive, signalled))
    pid = read_run_file(home, "up").get("pid")
    # After a kill, the file names the killed process until the next one has written its own.
    if isinstance(pid, int) and not signalled and is_running(pid, "reverie"):
        signalled.append(pid)
        try:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        except PermissionError:
            hint = f"process {pid} belongs to another user: end it as that one"
            raise Unavailable("Reverie", hint) from None
    return False

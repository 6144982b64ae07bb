"""Ending the Reverie of a home folder from beside it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from reverie.domain.errors import Unavailable
from reverie.embedded.home import Home, existing_home, read_note
from reverie.embedded.lock import is_held
from reverie.embedded.processes import alive, runs

LOOK_SECONDS = 0.1


def end(root: Path, seconds: float) -> int | None:
    """Tells the supervisor of a home folder to stop, and waits until no process of it is left.

    Answers its process id, or None where none runs. Raises `Unavailable` where it is still there
    after `seconds`, or belongs to another user.
    """
    home = existing_home(root)
    if home is None or not is_held(home):
        return None
    again = Retrying(
        retry=retry_if_result(lambda over: not over),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(LOOK_SECONDS),
    )
    ended: list[int] = []
    try:
        again(_ended, home, ended)
    except RetryError:
        raise Unavailable("Reverie", _still(home, ended)) from None
    return ended[0] if ended else None


def _ended(home: Home, told: list[int]) -> bool:
    """Whether nobody holds the folder, nor who did is left. That one is told once, when known."""
    if not is_held(home):
        return not any(map(alive, told))
    process = read_note(home, "up").get("pid")
    # Where one was killed, its note names it until the next one has written its own.
    if isinstance(process, int) and not told and runs(process, "reverie"):
        told.append(process)
        _tell(process)
    return False


def _tell(process: int) -> None:
    try:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    except PermissionError:
        hint = f"process {process} belongs to another user: end it as that one"
        raise Unavailable("Reverie", hint) from None


def _still(home: Home, told: list[int]) -> str:
    who = f"process {told[0]}" if told else "whoever holds its folder"
    return f"{who} did not end in time: see {home.logs}"

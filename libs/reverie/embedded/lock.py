"""One supervisor per home folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from reverie.domain.errors import Conflict
from reverie.embedded.home import Home, read_note


@contextmanager
def only_one(home: Home) -> Iterator[None]:
    """Hold the home folder. Raises `Conflict`, naming who runs, where another does."""
    fd = _open(home)
    try:
        _take(fd, home)
        yield
    finally:
        os.close(fd)


def is_held(home: Home) -> bool:
    """Whether a supervisor runs on this home folder."""
    if not (home.run / "up.lock").exists():
        return False
    fd = _open(home)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _open(home: Home) -> int:
    return os.open(home.run / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)


def _take(fd: int, home: Home) -> None:
    # Not at the top: who only looks waits for nothing that it does not need.
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

    # Who only looks (`is_held`) holds it for an instant, so one refusal is not believed.
    again = Retrying(
        retry=retry_if_exception_type(BlockingIOError),
        stop=stop_after_delay(0.5),
        wait=wait_fixed(0.05),
        reraise=True,
    )
    try:
        again(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(_who(home)) from None


def _who(home: Home) -> str:
    note = read_note(home, "up")
    where = f", gateway {note['gateway']}" if "gateway" in note else ""
    pid = f" (process {note['pid']}{where})" if "pid" in note else ""
    return f"Reverie is already up on {home.root}{pid}: use that one, or set another REVERIE_HOME"

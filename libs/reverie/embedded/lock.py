"""A file lock that allows one supervisor per home folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from reverie.domain.core.errors import Conflict
from reverie.embedded.home import Home, read_run_file


@contextmanager
def hold_home_lock(home: Home) -> Iterator[int]:
    """Locks the home folder, by a descriptor.

    Raises `Conflict`, naming the owner, if it is already locked.
    """
    fd = _open_lock_file(home)
    try:
        _acquire(fd, home)
        yield fd
    finally:
        os.close(fd)


def is_home_locked(home: Home) -> bool:
    """Whether a supervisor runs on this home folder."""
    if not (home.run / "up.lock").exists():
        return False
    fd = _open_lock_file(home)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _open_lock_file(home: Home) -> int:
    return os.open(home.run / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)


def _acquire(fd: int, home: Home) -> None:
    # Not at the top: who only looks waits for nothing that it does not need.
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

    # A check (`is_home_locked`) holds the lock for an instant, so one refusal is not final.
    retrying = Retrying(
        retry=retry_if_exception_type(BlockingIOError),
        stop=stop_after_delay(0.5),
        wait=wait_fixed(0.05),
        reraise=True,
    )
    try:
        retrying(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(describe_holder(home)) from None


def describe_holder(home: Home) -> str:
    """Who runs on the home folder, and what to do."""
    state = read_run_file(home, "up")
    gateway = f", gateway {state['gateway']}" if "gateway" in state else ""
    pid = f" (process {state['pid']}{gateway})" if "pid" in state else ""
    return f"Reverie is already up on {home.root}{pid}: use that one, or set another REVERIE_HOME"

"""Starts, checks and stops child processes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import psutil  # type: ignore[import-untyped]
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from reverie.domain.core.errors import Unavailable

LOG_LIMIT = 8 * 1024 * 1024
"""Bytes after which a log file is turned over when its process starts."""


class Child(Protocol):
    """The handle of a child: a `subprocess.Popen` or an `InheritedChild`."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        ...


class InheritedChild:
    """A child that this process started before it executed another program.

    It is also the handle of a process of others; the exit code of such a one is always 0.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._code = None if is_alive(self.pid) else 0
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        seconds = math.inf if timeout is None else timeout
        if not wait_until(lambda: self.poll() is not None, seconds, 0.01):
            raise subprocess.TimeoutExpired(str(self.pid), seconds)
        return self._code or 0


StopSteps = Sequence[tuple[signal.Signals, float]]
"""Signals to end a process with, each with the seconds it is given."""


def spawn(
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    options: Mapping[str, Any] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own (Ctrl-C is not for it), writing to the log."""
    descriptor = open_log(log)
    try:
        return subprocess.Popen(
            list(command),
            cwd="/",
            env=env,
            stdin=stdin,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            umask=0o077,
            **(options or {}),
        )
    finally:
        os.close(descriptor)


def wait_until(condition: Callable[[], bool], seconds: float, interval: float) -> bool:
    """Waits until the condition holds; False when the seconds are over before."""
    retrying = Retrying(
        retry=retry_if_result(lambda holds: not holds),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(interval),
        retry_error_callback=lambda _: False,
    )
    return bool(retrying(condition))


def wait_until_ready(
    child: subprocess.Popen[bytes], is_ready: Callable[[], bool], name: str, log: Path
) -> None:
    """Waits until `is_ready()`, at most a minute. Raises `Unavailable` on timeout."""

    if not wait_until(lambda: child.poll() is not None or is_ready(), 60, 0.02):
        child.kill()
        child.wait()
    if child.poll() is not None:
        raise Unavailable(name, f"it does not come up: {read_last_lines(log, 3)}")


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def is_running(pid: int, *fragments: str) -> bool:
    """Whether the process runs and its command line contains all these words."""
    try:
        command = psutil.Process(pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False
    return is_alive(pid) and all(
        any(fragment in argument for argument in command) for fragment in fragments
    )


def stop(pid: int, steps: StopSteps, child: Child | None = None) -> None:
    """Sends each signal in turn until the process has ended. `child` is its handle, if ours."""
    if child is not None and child.poll() is not None:
        # It was waited for: another process may have its number.
        return
    for signal_number, seconds in steps:
        try:
            psutil.Process(pid).send_signal(signal_number)
        except psutil.NoSuchProcess:
            break
        # An orphan may stay a zombie for a while, so its number going away is not waited for.
        if wait_until(lambda: not is_alive(pid), seconds, 0.01):
            break
    if child is not None:
        # A process with threads is a zombie a moment before it can be reaped.
        with suppress(subprocess.TimeoutExpired):
            child.wait(2)


def open_log(log: Path) -> int:
    """A descriptor that appends to the log; a log grown over `LOG_LIMIT` is kept as `.1`."""
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_name(log.name + ".1"))
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def read_last_lines(log: Path, count: int = 12) -> str:
    """The end of a log, for an error message."""
    try:
        with log.open(errors="replace") as file:
            return "".join(deque(file, maxlen=count)).rstrip()
    except FileNotFoundError:
        return ""

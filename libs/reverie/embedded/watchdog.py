"""Restarts supervised processes that ended, with growing delays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from reverie.domain.core.errors import ReverieError
from reverie.embedded.reporting import NoteReporter, describe_process

CHECK_SECONDS = 0.2
"""Seconds between two checks of the processes."""
FIRST_RESTART_DELAY = 0.1
MAX_RESTART_DELAY = 8.0
"""Seconds. With the start itself, a process is back within 15 s after its fault is gone."""
STABLE_SECONDS = 10.0
"""Seconds after which a process counts as started, so that its next delay is short again."""


class SupervisedProcess(Protocol):
    """A process that can be started, checked and stopped. Calls may block for seconds."""

    name: str

    def start(self) -> None:
        """Starts it, or adopts it if it runs."""

    def is_running(self) -> bool:
        """Whether its process is running."""
        ...

    def stop(self) -> None:
        """End it in order, or by force."""


@dataclass
class _WatchedProcess:
    process: SupervisedProcess
    failures: int = 0
    started_at: float = 0.0
    restart_at: float | None = None


async def watch_processes(
    processes: Iterable[SupervisedProcess], stop: asyncio.Event, reporter: NoteReporter
) -> None:
    """Until `stop`, start again what ended."""
    entries = [_WatchedProcess(process, started_at=time.monotonic()) for process in processes]
    while not stop.is_set():
        for entry in entries:
            await _check_process(entry, reporter)
        await wait_or_stop(stop, CHECK_SECONDS)


async def wait_or_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait for the seconds, or until `stop`."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


async def _check_process(entry: _WatchedProcess, reporter: NoteReporter) -> None:
    now = time.monotonic()
    if entry.restart_at is None:
        if not entry.process.is_running():
            _schedule_restart(entry, now, reporter)
    elif now >= entry.restart_at:
        entry.restart_at, entry.started_at = None, now
        try:
            await asyncio.to_thread(entry.process.start)
        except (ReverieError, OSError) as error:
            name = describe_process(entry.process.name)
            reporter.note(f"{name} does not start: {error}")


def _schedule_restart(entry: _WatchedProcess, now: float, reporter: NoteReporter) -> None:
    entry.failures = 1 if now - entry.started_at > STABLE_SECONDS else entry.failures + 1
    delay = min(FIRST_RESTART_DELAY * 2 ** (entry.failures - 1), MAX_RESTART_DELAY)
    entry.restart_at = now + delay
    name = describe_process(entry.process.name)
    reporter.note(f"{name} ended; it starts again in {delay:g} s")

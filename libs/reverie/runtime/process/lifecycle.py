"""Stop signals of a process, and supervision of its background jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger()

LIFELINE = "REVERIE_LIFELINE"
INITIAL_RESTART_DELAY = 0.5
MAX_RESTART_DELAY = 30.0
_HEALTHY_SECONDS = 60.0
_CANCEL_SECONDS = 2.0

BackgroundJob = Callable[[], Awaitable[None]]


@asynccontextmanager
async def stop_signal() -> AsyncIterator[asyncio.Event]:
    """An event that is set by SIGTERM, SIGINT or, with `REVERIE_LIFELINE=1`, the end of stdin.

    The lifeline ends a child whose parent died without a word. A second signal of the same
    kind ends the process at once.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for signal_number in signals:
        loop.add_signal_handler(signal_number, _handle_first_signal, loop, stop, signal_number)
    if os.environ.get(LIFELINE) == "1":
        _watch_stdin(loop, stop)
    try:
        yield stop
    finally:
        for signal_number in signals:
            loop.remove_signal_handler(signal_number)


def _handle_first_signal(
    loop: asyncio.AbstractEventLoop, stop: asyncio.Event, signal_number: signal.Signals
) -> None:
    log.info("stopping", cause=signal_number.name)
    loop.remove_signal_handler(signal_number)
    stop.set()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def wait() -> None:
        try:
            while os.read(sys.stdin.fileno(), 4096):
                pass
        except OSError:
            pass
        if not loop.is_closed():
            loop.call_soon_threadsafe(_handle_stdin_closed, stop)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _handle_stdin_closed(stop: asyncio.Event) -> None:
    if not stop.is_set():
        log.info("stopping", cause="lifeline")
        stop.set()


@asynccontextmanager
async def run_in_background(jobs: Sequence[BackgroundJob]) -> AsyncIterator[None]:
    """Runs long tasks concurrently with the block and cancels them at its end."""
    tasks = [asyncio.create_task(supervise(job)) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)
            for task in stuck:
                log.warning("background_loop_stalled", task=task.get_name())


async def supervise(job: BackgroundJob, initial_delay: float = INITIAL_RESTART_DELAY) -> None:
    """Runs `job` until it returns. A crash is logged, and the job is restarted.

    Pauses double from `initial_delay` to 30 s, and are reset after a minute without a crash.
    """
    name = getattr(job, "__qualname__", None) or type(job).__qualname__
    delay = initial_delay
    while True:
        started = time.monotonic()
        try:
            await job()
        except Exception:
            if time.monotonic() - started > _HEALTHY_SECONDS:
                delay = initial_delay
            log.exception("background_loop_crashed", work=name, restart_in=delay)
        else:
            log.debug("background_loop_ended", work=name)
            return
        await asyncio.sleep(delay)
        delay = min(delay * 2, MAX_RESTART_DELAY)

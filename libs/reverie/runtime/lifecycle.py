"""How a process is told to stop, and how its long tasks are kept alive until then."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger()

LIFELINE = "REVERIE_LIFELINE"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
_HEALTHY_SECONDS = 60.0
_CANCEL_SECONDS = 2.0

Background = Callable[[], Awaitable[None]]


@asynccontextmanager
async def stop_signal(environ: Mapping[str, str] = os.environ) -> AsyncIterator[asyncio.Event]:
    """An event that is set by SIGTERM, SIGINT or, with `REVERIE_LIFELINE=1`, the end of stdin.

    The lifeline ends a child whose parent died without a word. A second signal of the same
    kind ends the process at once.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, _first_signal, loop, stop, number)
    if environ.get(LIFELINE) == "1":
        _watch_stdin(loop, stop)
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _first_signal(
    loop: asyncio.AbstractEventLoop, stop: asyncio.Event, number: signal.Signals
) -> None:
    log.info("stopping", cause=number.name)
    loop.remove_signal_handler(number)
    stop.set()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def wait() -> None:
        try:
            while os.read(sys.stdin.fileno(), 4096):
                pass
        except OSError:
            pass
        if not loop.is_closed():
            loop.call_soon_threadsafe(_lifeline_cut, stop)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _lifeline_cut(stop: asyncio.Event) -> None:
    if not stop.is_set():
        log.info("stopping", cause="lifeline")
        stop.set()


@asynccontextmanager
async def in_background(
    works: Sequence[Background], first_pause: float = FIRST_PAUSE
) -> AsyncIterator[None]:
    """Runs long tasks beside the block and cancels them at its end."""
    tasks = [asyncio.create_task(supervise(work, first_pause)) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)
            for task in stuck:
                log.warning("background_stuck", task=task.get_name())


async def supervise(work: Background, first_pause: float = FIRST_PAUSE) -> None:
    """Runs `work` until it returns. A crash is logged and followed by a new start.

    Pauses double from `first_pause` to 30 s, and begin anew after a minute without a crash.
    """
    name = getattr(work, "__qualname__", None) or type(work).__qualname__
    pause = first_pause
    while True:
        started = time.monotonic()
        try:
            await work()
        except Exception:
            if time.monotonic() - started > _HEALTHY_SECONDS:
                pause = first_pause
            log.exception("background_crashed", work=name, restart_in=pause)
        else:
            log.debug("background_ended", work=name)
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)

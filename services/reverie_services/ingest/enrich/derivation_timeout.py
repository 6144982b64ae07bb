"""Gives up what takes too long to derive from a text; the memory is kept without that part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import structlog

DERIVATION_SECONDS = 5.0
"""How long one text may be read. Texts of 64 KiB take less than two seconds of the processor."""
EMBEDDING_SECONDS = 20.0
"""How long the texts of a group may be embedded. 64 KiB take about five seconds."""

cuts = 0
"""How often this process gave up: the metric `reverie_derivations_cut`."""

log = structlog.get_logger("reverie.ingest")
T = TypeVar("T")


async def derive_in_thread(memory: UUID, part: str, function: Callable[[], T], default: T) -> T:
    """What the function returns, or `default` if it takes longer than `DERIVATION_SECONDS`.

    The memory is then kept without that part, and its event is not delivered again: the next
    delivery would take as long. The thread ends when the function does.
    """
    loop, started = asyncio.get_running_loop(), asyncio.Event()

    def run() -> T:
        loop.call_soon_threadsafe(started.set)
        return function()

    work = asyncio.create_task(asyncio.to_thread(run))
    # The time begins when a thread is free.
    await started.wait()
    try:
        return await asyncio.wait_for(work, DERIVATION_SECONDS)
    except TimeoutError:
        report_cut(memory, part, DERIVATION_SECONDS)
        return default


def report_cut(memory: UUID, part: str, seconds: float) -> None:
    """Counts and logs that a memory is kept without all of a part, after so many seconds."""
    global cuts
    cuts += 1
    log.warning("derivation_cut", memory=str(memory), part=part, seconds=seconds)

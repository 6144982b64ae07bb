"""Derives entities and edges from a text in a thread, for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from reverie.store.memories.enrichment import EnrichableMemory

DERIVATION_SECONDS = 5.0
"""How long one text may be read. Texts of 64 KiB take less than two seconds of the processor."""

cuts = 0
"""How often this process gave up; `reverie_derivations_cut`."""

log = structlog.get_logger("reverie.ingest")
T = TypeVar("T")


async def derive_in_thread(
    memory: EnrichableMemory, part: str, function: Callable[[], T], default: T
) -> T:
    """What the function returns, or `default` if it takes longer than `DERIVATION_SECONDS`.

    The memory is then kept without that part, and its event is not delivered again: the next
    delivery would take as long. The thread ends when the function does.
    """
    global cuts
    try:
        async with asyncio.timeout(DERIVATION_SECONDS):
            return await asyncio.to_thread(function)
    except TimeoutError:
        cuts += 1
        log.warning("derivation_cut", memory=str(memory.id), part=part, seconds=DERIVATION_SECONDS)
        return default

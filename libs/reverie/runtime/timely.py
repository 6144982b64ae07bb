"""Deadlines that hold even where what is late takes its time to end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")
# The loop alone would not keep them alive.
_ending: set[asyncio.Future[Any]] = set()


async def timely(work: Awaitable[T], seconds: float) -> T:
    """The result of `work`; raises `TimeoutError` after `seconds`.

    Late work is cancelled and not waited for: a connection to a server that fell silent needs
    seconds more to be given up.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            _ending.add(task)
            task.add_done_callback(_ended)


def _ended(task: asyncio.Future[Any]) -> None:
    """Nobody asks any more how it went."""
    _ending.discard(task)
    if not task.cancelled():
        task.exception()

"""Two asyncio helpers: a hard timeout and a writer that batches items in the background."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# The loop alone would not keep them alive.
_cancelled_tasks: set[asyncio.Future[Any]] = set()


async def run_with_timeout(work: Awaitable[T], seconds: float) -> T:
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
            _cancelled_tasks.add(task)
            task.add_done_callback(_forget_task)


def _forget_task(task: asyncio.Future[Any]) -> None:
    """Nobody asks any more how it went."""
    _cancelled_tasks.discard(task)
    if not task.cancelled():
        task.exception()


BATCH_DELAY_SECONDS = 0.5


class BatchWriter(Generic[T]):
    """Queues at most `max_pending` items, and writes all queued items in one batch."""

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[None]],
        max_pending: int,
        pause: float = BATCH_DELAY_SECONDS,
    ) -> None:
        self._write, self._pause = write, pause
        self._pending: deque[T] = deque()
        self._max_pending = max_pending
        self._has_items = asyncio.Event()
        self._write_lock = asyncio.Lock()

    def add(self, item: T) -> bool:
        """Queues an item and returns at once; False if the queue is full."""
        if len(self._pending) >= self._max_pending:
            return False
        self._pending.append(item)
        self._has_items.set()
        return True

    async def run(self) -> None:
        """Writes batches until it is cancelled; then it writes the rest of the queue."""
        try:
            while True:
                await self._has_items.wait()
                await asyncio.sleep(self._pause)
                await self.flush()
        finally:
            await self.flush()

    def take_pending(self) -> list[T]:
        """Empties the queue without writing; returns its items."""
        pending = list(self._pending)
        self._pending.clear()
        return pending

    async def flush(self) -> None:
        """Writes the queue; returns when a write that was in progress is done too."""
        async with self._write_lock:
            batch = self.take_pending()
            self._has_items.clear()
            if batch:
                await self._write(batch)

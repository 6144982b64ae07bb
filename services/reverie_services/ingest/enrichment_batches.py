"""Groups memories of a tenant that are enriched at the same time, in the order they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

BATCH_SIZE = 8
"""The size of a group: as many texts as a model processes at once."""

MAX_BATCH_TEXTS = 32
"""Chunks of a group that is embedded: a memory with more is embedded alone."""

BatchWork = Callable[[list[T]], Awaitable[Sequence[R]]]
"""The function that processes a group; it returns one result per item, in the same order."""


class _PendingItem:
    """An item in a queue. `wakeup` is done when its result is there, or when it leads a group."""

    def __init__(self, item: Any) -> None:
        self.item = item
        self.wakeup: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.runs_alone = self.is_done = False
        self.result: Any = None

    def wake(self) -> None:
        if not self.wakeup.done():
            self.wakeup.set_result(None)


class BatchQueues:
    """Queues items by tenant and processes them in groups. Tenants do not wait for each other.

    The first item of a queue processes the group behind it. If a group fails, each item is
    processed alone, so no item fails because of another. A group has up to `max_size` items, and a
    weight of up to `max_weight` unless it is one item.
    """

    def __init__(
        self,
        max_size: int = BATCH_SIZE,
        weigh: Callable[[Any], int] = lambda _: 0,
        max_weight: int = 0,
    ) -> None:
        self._max_size, self._weigh, self._max_weight = max_size, weigh, max_weight
        self._queues: dict[int, deque[_PendingItem]] = {}

    async def submit(self, tenant: int, work: BatchWork[T, R], item: T) -> R:
        """Returns the result of `work` for an item, which is processed with others that wait.

        Work begins when all earlier items have ended, successful or not.
        """
        pending, queue = _PendingItem(item), self._queues.setdefault(tenant, deque())
        queue.append(pending)
        try:
            if queue[0] is not pending:
                await pending.wakeup
            if not pending.is_done:
                # Items that arrive at the same moment join the group.
                await asyncio.sleep(0)
                await self._run_batch(queue, pending, work)
            result: R = pending.result
            return result
        finally:
            self._remove(tenant, queue, pending)

    async def _run_batch(
        self, queue: deque[_PendingItem], pending: _PendingItem, work: BatchWork[Any, Any]
    ) -> None:
        """Processes the first group of the queue, which `pending` leads."""
        group = [pending] if pending.runs_alone else self._next_batch(queue)
        try:
            results = await work([entry.item for entry in group])
        except Exception:
            if len(group) == 1:
                raise
            for entry in group:
                entry.runs_alone = True
            await self._run_batch(queue, pending, work)
            return
        for entry, result in zip(group, results, strict=True):
            entry.is_done, entry.result = True, result

    def _next_batch(self, queue: deque[_PendingItem]) -> list[_PendingItem]:
        group: list[_PendingItem] = []
        weight = 0
        for entry in islice(queue, self._max_size):
            weight += self._weigh(entry.item)
            if group and (entry.runs_alone or weight > self._max_weight):
                break
            group.append(entry)
        return group

    def _remove(self, tenant: int, queue: deque[_PendingItem], pending: _PendingItem) -> None:
        """Removes an item. A leader wakes the finished items, and then the next leader."""
        is_leader = bool(queue) and queue[0] is pending
        if pending in queue:
            queue.remove(pending)
        if not is_leader:
            return
        while queue and queue[0].is_done:
            queue.popleft().wake()
        if queue:
            queue[0].wake()
        else:
            del self._queues[tenant]


class EnrichmentBatches:
    """The queues that a memory passes: it is loaded, embedded and written, each with others.

    Memories written one by one and those that came in bulk have groups of their own.
    """

    def __init__(self) -> None:
        self.loading, self.writing = BatchQueues(), BatchQueues()
        self.embedding = BatchQueues(
            weigh=lambda chunked: len(chunked.texts) if chunked else 0, max_weight=MAX_BATCH_TEXTS
        )

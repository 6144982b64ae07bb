"""Queues tenants with East Asian memories for a check of their embedding model."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from reverie.domain.text.characters import is_east_asian

CHECK_EVERY = 20
"""Of so many such memories of a tenant that come, the first has the tenant looked at."""
RETRY_SECONDS = 60.0
"""How often one of those is looked at again that could not be moved."""


class ModelSelectionQueue:
    """What this process saw of each tenant: such memories counted, and whom to look at.

    `unreadable`: tenants that should go by a model which reads their memories, and do not.
    `complete`: those of which nothing lacks a vector of the model that they were moved to.
    """

    def __init__(self) -> None:
        self.unreadable: set[int] = set()
        self.complete: set[int] = set()
        self._counts: dict[int, int] = {}
        self._queue: asyncio.Queue[int] = asyncio.Queue()
        self._retries: dict[int, None] = {}
        self._next_retry = 0.0

    def observe(self, tenant: int, content: str) -> None:
        """Takes note of a memory that came."""
        if not is_east_asian(content):
            return
        count = self._counts.get(tenant, 0)
        self._counts[tenant] = count + 1
        if count % CHECK_EVERY == 0:
            self._queue.put_nowait(tenant)

    @property
    def pending_count(self) -> int:
        """How many are to be looked at."""
        return self._queue.qsize()

    def retry_later(self, tenant: int) -> None:
        """Has the tenant looked at again, after those that wait for it already."""
        if not self._retries:
            self._next_retry = monotonic() + RETRY_SECONDS
        self._retries[tenant] = None

    async def next_tenant(self) -> int:
        """The next tenant to look at, once there is one: now and then one that was before."""
        if not self._retries:
            return await self._queue.get()
        if (pause := self._next_retry - monotonic()) > 0:
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._queue.get(), pause)
        self._next_retry = monotonic() + RETRY_SECONDS
        tenant = next(iter(self._retries))
        del self._retries[tenant]
        return tenant

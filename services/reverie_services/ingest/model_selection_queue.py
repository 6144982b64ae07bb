"""Queues tenants with East Asian memories for a check of their embedding model."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from reverie.domain.text.characters import is_east_asian

CHECK_EVERY = 20
"""Every 20th such memory of a tenant queues the tenant for examination, starting with the first."""
RETRY_SECONDS = 60.0
"""Seconds between examinations of tenants that could not be moved."""


class ModelSelectionQueue:
    """Counts East Asian memories by tenant, and queues the tenants to examine.

    `unreadable`: tenants that need a model for their language and do not have it. `complete`:
    tenants whose new model has all vectors.
    """

    def __init__(self) -> None:
        self.unreadable: set[int] = set()
        self.complete: set[int] = set()
        self._counts: dict[int, int] = {}
        self._queue: asyncio.Queue[int] = asyncio.Queue()
        self._retries: dict[int, None] = {}
        self._next_retry = 0.0

    def observe(self, tenant: int, content: str) -> None:
        """Counts a new memory."""
        if not is_east_asian(content):
            return
        count = self._counts.get(tenant, 0)
        self._counts[tenant] = count + 1
        if count % CHECK_EVERY == 0:
            self._queue.put_nowait(tenant)

    def retry_later(self, tenant: int) -> None:
        """Queues the tenant again, after those that already wait."""
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

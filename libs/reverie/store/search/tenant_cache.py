"""Base class of in-memory caches per tenant, loaded in the background within a size limit."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import asyncpg
import structlog

from reverie.domain.core.errors import ReverieError

log = structlog.get_logger("reverie.store")

RELOAD_SECONDS = 30.0
RETRY_SECONDS = 5.0
"""Seconds after which a cached entry is read again, and one that was not cached."""
LOAD_SHARE = 50
"""Rereading an entry takes at most one part in so many of the time.

So do all reads of entries that do not fit into the cache.
"""
POSTPONED_LIMIT = 1_000
"""Of how many it is known when they may be read again."""

CacheKey = tuple[int, str]
"""A tenant, and a table."""


class SizedData(Protocol):
    """Data that can be cached."""

    @property
    def nbytes(self) -> int: ...


K = TypeVar("K", bound=SizedData)


class TenantCache(ABC, Generic[K]):
    """Keeps at most `megabytes`, of the tenants that asked last."""

    def __init__(self, megabytes: int) -> None:
        self._capacity = megabytes * 1_000_000
        self._entries: OrderedDict[CacheKey, K] = OrderedDict()
        self._pending: dict[CacheKey, None] = {}
        self._retry_at: dict[CacheKey, float] = {}
        self._full_until = 0.0
        self._pending_event = asyncio.Event()

    @abstractmethod
    async def _load(self, key: CacheKey) -> K | None:
        """Loads the data; None if it is not worth caching."""

    def _lookup(self, key: CacheKey) -> K | None:
        """Returns the cached data; if missing, requests a read."""
        entry = self._entries.get(key)
        if entry is None:
            self._request(key)
        else:
            self._entries.move_to_end(key)
        return entry

    def _drop(self, key: CacheKey) -> None:
        if self._entries.pop(key, None) is not None:
            self._full_until = 0.0

    def _request(self, key: CacheKey) -> None:
        if self._may_load(key) and time.monotonic() >= self._retry_at.get(key, 0.0):
            self._pending[key] = None
            self._pending_event.set()

    def _may_load(self, key: CacheKey) -> bool:
        return key in self._entries or time.monotonic() >= self._full_until

    async def run(self) -> None:
        """Reads requested data outside of requests. A background task."""
        while True:
            await self._pending_event.wait()
            await self._load_next()

    async def load_pending(self) -> None:
        """Reads all that is wanted now."""
        while self._pending:
            await self._load_next()

    async def _load_next(self) -> None:
        """Reads what has been wanted longest, if it still may be."""
        key = next(iter(self._pending))
        try:
            if self._may_load(key):
                await self._load_entry(key)
        finally:
            # Who asked meanwhile has it now.
            self._pending.pop(key, None)
            if not self._pending:
                self._pending_event.clear()

    async def _load_entry(self, key: CacheKey) -> None:
        started, loaded = time.monotonic(), None
        try:
            loaded = await self._load(key)
        except (ReverieError, asyncpg.PostgresError) as error:
            log.warning("tenant_cache_load_failed", table=key[1], error=type(error).__name__)
        now = time.monotonic()
        pause = LOAD_SHARE * (now - started)
        self._postpone(key, now + max(RETRY_SECONDS if loaded is None else RELOAD_SECONDS, pause))
        if loaded is not None and not self._insert(key, loaded):
            self._full_until = now + pause

    def _postpone(self, key: CacheKey, until: float) -> None:
        """It is not read again before that."""
        self._retry_at[key] = max(until, self._retry_at.get(key, 0.0))
        while len(self._retry_at) > POSTPONED_LIMIT:
            del self._retry_at[next(iter(self._retry_at))]

    def _insert(self, key: CacheKey, loaded: K) -> bool:
        """Keeps it; whether there was room without driving out others."""
        self._entries.pop(key, None)
        if loaded.nbytes > self._capacity:  # it would drive all others out, and not stay itself
            return False
        self._entries[key] = loaded
        evicted = list(self._find_evictions())
        for evicted_key in evicted:
            del self._entries[evicted_key]
            self._postpone(evicted_key, time.monotonic() + 2 * RELOAD_SECONDS)
        return not evicted

    def _find_evictions(self) -> Iterator[CacheKey]:
        """Returns the entries used longest ago that exceed the capacity."""
        excess = sum(entry.nbytes for entry in self._entries.values()) - self._capacity
        for key, entry in self._entries.items():
            if excess <= 0:
                return
            yield key
            excess -= entry.nbytes

"""Holds the recall indexes of tenants that ask, within a budget, and keeps each up to date."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import structlog
from numpy.typing import NDArray

from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.domain.retrieval.candidates import EDGE_KINDS
from reverie.domain.retrieval.ranking_facts import KINDS, encode_moment
from reverie.domain.retrieval.recall_index import RecallIndex, build_index
from reverie.store.db.database import Database, TenantConnection
from reverie.store.search.embedding_models import TenantModel
from reverie.store.search.index_decoding import decode_entries, decode_ranks

log = structlog.get_logger("reverie.store")

MAX_MEMORIES = 200_000
BYTES_PER_MEMORY, BYTES_PER_DIMENSION = 900, 2
"""The expected size of an index: bytes for each memory, and for each number of a vector."""
MAX_CHANGES = 500
"""If more memories changed, the index is loaded again; until then Postgres answers."""
MAX_AGE_SECONDS = 1_800.0
"""An index unused for this time is loaded again; changes are recorded for two hours."""
RELOAD_SECONDS = 10.0
"""The shortest time between two loads of an index."""
RETRY_SECONDS = 5.0
"""The time after which an index that could not be loaded is tried again."""
LOAD_SHARE = 20
"""The pause after a load is this many times as long as the load."""

CacheKey = tuple[int, str]
"""A tenant, and the table of its vectors."""
ALL_RANKS = UUID(int=0)
_KINDS = [kind.value for kind in KINDS]
_EDGE_KINDS = [kind.value for kind in EDGE_KINDS]


@dataclass(frozen=True)
class OpenIndex:
    """An index that holds all that was committed, and the terms of the question."""

    index: RecallIndex
    terms: NDArray[np.int32]


@dataclass
class _CachedIndex:
    """An index, and up to where it was read: server, snapshot, and the hour of the last uses."""

    index: RecallIndex
    source: str
    snapshot: str
    hour: datetime
    asked_at: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def advance(self, snapshot: str, now: float) -> None:
        """Notes up to where the index was read, unless a concurrent question read further."""
        if _end_of(snapshot) >= _end_of(self.snapshot):
            self.snapshot, self.asked_at = snapshot, max(self.asked_at, now)


class RecallIndexCache:
    """Keeps at most `megabytes` of indexes, those of the tenants that asked last."""

    def __init__(self, database: Database, megabytes: int) -> None:
        self._db = database
        self._capacity = megabytes * 1_000_000
        self._cached: OrderedDict[CacheKey, _CachedIndex] = OrderedDict()
        self._pending: dict[CacheKey, TenantModel] = {}
        self._retry_at: dict[CacheKey, float] = {}
        self._pending_event = asyncio.Event()

    async def open(self, tenant: int, model: TenantModel, text: str) -> OpenIndex | None:
        """Brings a tenant's index up to date, and finds the terms of the prepared question `text`.

        Returns None if there is none; one is then loaded in the background. Raises `Unavailable` if
        Postgres does not say what changed.
        """
        try:
            return await self._open(tenant, model, text)
        except asyncpg.PostgresError as error:
            raise Unavailable("the recall index", type(error).__name__) from error

    async def _open(self, tenant: int, model: TenantModel, text: str) -> OpenIndex | None:
        key = (tenant, model.vector_table)
        cached = self._cached.get(key)
        now = time.monotonic()
        if cached is None or now - cached.asked_at > MAX_AGE_SECONDS:
            self._drop(key)
            self._request(key, model)
            return None
        self._cached.move_to_end(key)
        async with self._db.tenant_reader(tenant) as connection:
            connection.vector_table = model.vector_table
            row = await connection.fetch_row(
                "index_changes", text, cached.snapshot, MAX_CHANGES + 1
            )
            if row is None or row["source"] != cached.source:
                self._drop(key)
                return None
            changed = row["changed"]
            if len(changed) > min(MAX_CHANGES, cached.index.spare):
                self._drop(key)
                self._request(key, model)
                return None
            if changed:
                async with cached.lock:
                    # A concurrent question may have applied the same changes already.
                    if cached.snapshot != row["snapshot"]:
                        await _apply_changes(connection, cached.index, changed, model.dims)
                        cached.advance(row["snapshot"], now)
            if row["hour"] > cached.hour:
                await _apply_uses(connection, cached)
                cached.hour = row["hour"]
        cached.advance(row["snapshot"], now)
        if cached.index.is_worn:
            self._request(key, model)
        return OpenIndex(cached.index, np.array(row["terms"], np.int32))

    async def run(self, release_memory: Callable[[], None]) -> None:
        """Loads requested indexes outside of requests. A background task.

        `release_memory`: called in a thread after each, because loading takes several times the
        memory of an index.
        """
        while True:
            await self._pending_event.wait()
            await self._load_next()
            await asyncio.to_thread(release_memory)

    def _drop(self, key: CacheKey) -> None:
        self._cached.pop(key, None)

    def _request(self, key: CacheKey, model: TenantModel) -> None:
        if self._capacity and time.monotonic() >= self._retry_at.get(key, 0.0):
            self._pending[key] = model
            self._pending_event.set()

    async def _load_next(self) -> None:
        key, model = next(iter(self._pending.items()))
        started, loaded = time.monotonic(), None
        try:
            loaded = await self._load(key, model)
        except (ReverieError, asyncpg.PostgresError) as error:
            log.warning("recall_index_load_failed", error=type(error).__name__)
        finally:
            self._pending.pop(key, None)
            if not self._pending:
                self._pending_event.clear()
        now = time.monotonic()
        pause = LOAD_SHARE * (now - started)
        self._retry_at[key] = now + max(RETRY_SECONDS if loaded is None else RELOAD_SECONDS, pause)
        if loaded is not None and loaded.index.nbytes > self._capacity:
            self._drop(key)
        elif loaded is not None:
            self._cached[key] = loaded
        for evicted in list(self._find_evictions(now)):
            self._drop(evicted)
        for old in [known for known, at in self._retry_at.items() if at < now]:
            del self._retry_at[old]

    async def _load(self, key: CacheKey, model: TenantModel) -> _CachedIndex | None:
        tenant, table = key
        row: dict[str, Any] = {}
        async with self._db.snapshot(tenant) as connection:
            connection.vector_table = table
            head = await connection.fetch_row("index_snapshot")
            if head is None or not self._fits(head["memories"], head["vectors"], model.dims):
                return None
            for name, *args in (
                ("index_facts", _KINDS),
                ("index_words",),
                ("index_passages",),
                ("index_edges", _EDGE_KINDS),
            ):
                row |= dict(await connection.fetch_row(name, *args) or {})
        index = await asyncio.to_thread(_build, row, model.dims)
        return _CachedIndex(index, head["source"], head["snapshot"], head["hour"], time.monotonic())

    def _fits(self, memories: int, vectors: int, dims: int) -> bool:
        expected = memories * BYTES_PER_MEMORY + vectors * dims * BYTES_PER_DIMENSION
        return memories <= MAX_MEMORIES and expected <= self._capacity

    def _find_evictions(self, now: float) -> Iterator[CacheKey]:
        """The indexes that are too old, and those asked for longest ago beyond the capacity."""
        excess = sum(cached.index.nbytes for cached in self._cached.values()) - self._capacity
        for key, cached in self._cached.items():
            if excess > 0 or now - cached.asked_at > MAX_AGE_SECONDS:
                yield key
                excess -= cached.index.nbytes


def _build(row: dict[str, Any], dims: int) -> RecallIndex:
    return build_index(decode_entries(row, dims))


async def _apply_changes(
    connection: TenantConnection, index: RecallIndex, changed: list[UUID], dims: int
) -> None:
    """Reads the changed memories, and applies them to the index."""
    if ALL_RANKS in changed:
        index.set_ranks(*decode_ranks(await connection.fetch_value("index_ranks")))
    ids = [id for id in changed if id != ALL_RANKS]
    if not ids:
        return
    row = await connection.fetch_row("index_entries", ids, _KINDS, _EDGE_KINDS)
    if row is not None:
        index.apply(decode_entries(dict(row), dims), set(ids).difference(row["present"] or ()))


async def _apply_uses(connection: TenantConnection, cached: _CachedIndex) -> None:
    """Applies the uses of the hours that ended."""
    rows = await connection.fetch_rows("index_uses", cached.hour)
    cached.index.set_uses(
        np.array([row["doc"] for row in rows], np.int64),
        np.array([encode_moment(row["last"]) for row in rows], np.int64),
        np.array([round(row["boost"] or 0.0, 4) for row in rows], np.float32),
    )


def _end_of(snapshot: str) -> int:
    """The first transaction that a snapshot does not see."""
    return int(snapshot.split(":")[1])

"""Counts a tenant's memories, turns and vectors, with a short cache for large tenants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cachetools import TTLCache

from reverie.store.db.database import TenantConnection

EXACT_SEARCH_LIMIT = 20_000
"""With at most this many vectors of a tenant, all are compared."""
COUNT_LIMIT = 200_000
INDEX_WALK_COST = 10_000
"""The cost of a walk of the vector index, if all vectors are the tenant's, in comparisons."""
CACHE_MINIMUM = 2_000
CACHE_SECONDS = 30.0
_CACHE_SIZE = 10_000

T = TypeVar("T")


@dataclass(frozen=True)
class CorpusStats:
    """Corpus statistics for BM25: the number of documents, and their mean length in words."""

    documents: float
    mean_length: float


@dataclass(frozen=True)
class VectorCounts:
    """The vectors of a tenant, `COUNT_LIMIT` at most, and those of its whole partition.

    `partition_count` is as old as the statistics of the table.
    """

    tenant_count: int
    partition_count: float = 0.0

    @property
    def prefers_exact_search(self) -> bool:
        """Whether comparing all vectors costs less than the index.

        An index walk also meets the vectors of other tenants, so it costs more if the tenant's
        share is small.
        """
        if self.tenant_count <= EXACT_SEARCH_LIMIT:
            return True
        walk_cost = (
            INDEX_WALK_COST * max(self.partition_count, self.tenant_count) / self.tenant_count
        )
        return self.tenant_count < COUNT_LIMIT and self.tenant_count < walk_cost


class CorpusCounts:
    """The counts of tenants. Counts over `CACHE_MINIMUM` are cached for `CACHE_SECONDS`."""

    def __init__(self) -> None:
        self._cache: TTLCache[tuple[int, str], Any] = TTLCache(_CACHE_SIZE, CACHE_SECONDS)

    async def count_memories(
        self, connection: TenantConnection, scopes: Sequence[str]
    ) -> CorpusStats:
        """The memories of these scopes that have words."""
        return await self._get_cached(
            connection,
            f"memories {' '.join(scopes)}",
            lambda: _load_corpus_stats(connection, "corpus", list(scopes)),
            lambda stats: stats.documents,
        )

    async def count_turns(
        self, connection: TenantConnection, scopes: Sequence[str], agent: str | None
    ) -> CorpusStats:
        """The turns that have words, of these scopes and of one agent (None: any)."""
        return await self._get_cached(
            connection,
            f"turns {' '.join(scopes)} of {agent}",
            lambda: _load_corpus_stats(connection, "turn_corpus", list(scopes), agent),
            lambda stats: stats.documents,
        )

    async def count_vectors(self, connection: TenantConnection) -> VectorCounts:
        """The vectors in the table of the connection's model."""

        async def count() -> VectorCounts:
            row = await connection.fetch_row("vector_count", COUNT_LIMIT)
            return VectorCounts(row["own"], row["around"]) if row else VectorCounts(0)

        return await self._get_cached(
            connection, connection.vector_table, count, lambda counts: counts.tenant_count
        )

    async def uses_vector_index(self, connection: TenantConnection) -> bool:
        """Whether the tenant has enough vectors for the index."""

        async def counted() -> bool:
            row = await connection.fetch_row("vector_count", EXACT_SEARCH_LIMIT + 1)
            return row is not None and row["own"] > EXACT_SEARCH_LIMIT

        # The answer seldom changes, so it is cached for small tenants, too.
        return await self._get_cached(
            connection, f"{connection.vector_table} walked", counted, lambda _: CACHE_MINIMUM + 1
        )

    async def _get_cached(
        self,
        connection: TenantConnection,
        name: str,
        count: Callable[[], Awaitable[T]],
        size: Callable[[T], float],
    ) -> T:
        key = (connection.id, name)
        if (cached := self._cache.get(key)) is not None:
            return cached  # type: ignore[no-any-return]
        fresh = await count()
        if size(fresh) > CACHE_MINIMUM:
            self._cache[key] = fresh
        return fresh


async def _load_corpus_stats(connection: TenantConnection, name: str, *args: object) -> CorpusStats:
    row = await connection.fetch_row(name, *args)
    if row is None:
        return CorpusStats(0, 1)
    return CorpusStats(row["documents"], max(row["mean_length"], 1.0))

"""Caches the vectors of frequently read tenants and proposes candidates for exact search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray

from reverie.store.db.database import Database, TenantConnection
from reverie.store.search.tenant_cache import CacheKey, TenantCache

MIN_VECTORS = 2_000
"""Vectors from which on they are kept: fewer are compared as quickly as candidates looked up."""
MAX_VECTORS = 20_000
BYTES_PER_VECTOR = 1_560
"""Bytes of a vector of 384 numbers, with its chunk and its memory."""
CANDIDATE_COUNTS = (128, 512)
"""Numbers of candidates to look up: a larger one if the first was too small, then all."""
RESET_INTERVAL = 64
"""Searches after which the sufficient number of candidates is determined again."""
MAX_NEW_VECTORS = 200
"""Number of new vectors after which all are read again."""
COSINE_TOLERANCE = 1e-5
"""Maximum difference of a cosine that is summed in another order."""

Vector = NDArray[np.float32]


@dataclass
class CachedVectors:
    """A tenant's vectors in one snapshot of one table, `source`.

    `since`: the oldest transaction running then; `rows`: of length 1, in the order of `chunks` and
    their `memories`. `best_width`: by the scopes of a reader, the index in `CANDIDATE_COUNTS` that
    was enough last; past the end if none was.
    """

    source: str
    since: str
    chunks: NDArray[np.int64]
    memories: NDArray[np.void]
    rows: Vector
    best_width: dict[tuple[str, ...], int] = field(default_factory=dict)
    searches: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.rows.nbytes + self.chunks.nbytes + self.memories.nbytes

    def find_nearest(self, vector: Vector, count: int) -> tuple[list[int], list[UUID], float]:
        """The nearest `count` chunks in no order, their memories, and the cosine of the last."""
        # In 16 bits, as Postgres is asked.
        query = vector.astype(np.float16).astype(np.float32)
        similarity = np.vecdot(self.rows, query / np.linalg.norm(query))
        best = (
            np.argpartition(similarity, -count)[-count:] if count < len(similarity) else slice(None)
        )
        memories = [UUID(bytes=raw) for raw in self.memories[best].tolist()]
        return self.chunks[best].tolist(), memories, float(similarity[best].min())


class VectorCache(TenantCache[CachedVectors]):
    """Keeps at most `megabytes` of vectors, those of the tenants that asked last."""

    def __init__(self, database: Database, megabytes: int) -> None:
        super().__init__(megabytes)
        self._db = database

    async def search(
        self, connection: TenantConnection, vector: Vector, args: Sequence[Any], vector_count: int
    ) -> list[tuple[UUID, float]]:
        """Returns the nearest memories with their cosines, best first; None if the cache cannot
        decide.

        `args`: the arguments of `search_vectors_exact` up to the extra conditions; `vector_count`:
        the tenant's number of vectors.
        """
        cached = self._find_cached(connection, vector_count)
        scopes, limit, is_filtered = tuple(args[1]), args[3], args[4] or args[5]
        if cached is None or is_filtered:
            return []
        cached.searches += 1
        if cached.searches % RESET_INTERVAL == 0:
            cached.best_width.clear()
        for width_index in range(cached.best_width.get(scopes, 0), len(CANDIDATE_COUNTS)):
            chunks, memories, last = cached.find_nearest(vector, CANDIDATE_COUNTS[width_index])
            candidates = (chunks, cached.since, cached.source, memories)
            rows = await connection.fetch_rows("search_vectors_candidates", *args[:4], *candidates)
            if not self._is_current(connection, rows):
                return []
            found = [(row["id"], row["score"]) for row in rows if row["id"]]
            # Nothing that was no candidate is as near.
            if len(found) >= limit and found[limit - 1][1] > last + COSINE_TOLERANCE:
                cached.best_width[scopes] = width_index
                return found
        cached.best_width[scopes] = len(CANDIDATE_COUNTS)
        return []

    def _is_current(self, connection: TenantConnection, found: Sequence[asyncpg.Record]) -> bool:
        """Whether the table is the one that was read; records the number of new vectors."""
        name = (connection.id, connection.vector_table)
        if not found[0]["same"]:
            self._drop(name)
            return False
        if found[0]["fresh"] > MAX_NEW_VECTORS:
            self._request(name)
        return True

    def _find_cached(self, connection: TenantConnection, vector_count: int) -> CachedVectors | None:
        """Returns the cached vectors of a tenant with `vector_count` vectors.

        None if caching is not worthwhile, or not done yet.
        """
        fits = (
            MIN_VECTORS <= vector_count <= MAX_VECTORS
            and vector_count * BYTES_PER_VECTOR <= self._capacity
        )
        if not (fits and self._db.is_frequent_reader(connection.id)):
            return None
        name = (connection.id, connection.vector_table)
        cached = self._lookup(name)
        if cached is not None and len(cached.chunks) > 1.2 * vector_count:
            self._request(name)
        return cached

    async def _load(self, name: CacheKey) -> CachedVectors | None:
        tenant, table = name
        async with self._db.tenant_reader(tenant) as connection:
            connection.vector_table = table
            row = await connection.fetch_row("vectors_all", MAX_VECTORS + 1)
        chunks = np.frombuffer((row and row["chunks"]) or b"", ">i8").astype(np.int64)
        if row is None or not MIN_VECTORS <= len(chunks) <= MAX_VECTORS:
            return None
        rows = await asyncio.to_thread(_decode_vectors, row["vectors"], len(chunks))
        memories = np.frombuffer(row["memories"], "V16")
        return CachedVectors(row["source"], row["since"], chunks, memories, rows)


def _decode_vectors(raw: bytes, count: int) -> Vector:
    """Vectors as Postgres sends them: their dimensions and 0, then each number, in 16 bits."""
    rows: Vector = np.frombuffer(raw, ">f2").reshape(count, -1)[:, 2:].astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return rows

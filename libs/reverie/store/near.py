"""Vectors of the tenants that ask most, kept in memory: they name candidates, Postgres decides.

What is kept is as old as it may be: a search brings whatever came since into the same statement
(`search_vectors_near`), which looks each candidate up, so that nothing is found that is gone or may
not be read, and reckons its score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray

from reverie.store.database import Database, Tenant
from reverie.store.shelf import Name, Shelf

LEAST = 2_000
"""Vectors from which on they are kept: fewer are compared as quickly as candidates looked up."""
MOST = 20_000
LEAST_BYTES = 1_560
"""What a vector of 384 numbers takes, with its chunk and its memory."""
WIDTHS = (128, 512)
"""How many candidates are looked up: more where the first were too few, then all are compared."""
AGAIN = 64
"""After so many searches it is found out anew how many are enough."""
FRESH = 200
"""What came since, in vectors, from which on all are read again."""
ROUNDED = 1e-5
"""By how much a cosine may differ whose sum is reckoned in another order."""

Vector = NDArray[np.float32]


@dataclass
class Kept:
    """A tenant's vectors as they were in one snapshot of one table, `source`.

    `since`: the oldest transaction under way then; `rows`: of length 1, in the order of `chunks`
    and their `memories`.
    `first`: by the scopes of a reader, which of `WIDTHS` was enough last; past them where none was.
    """

    source: str
    since: str
    chunks: NDArray[np.int64]
    memories: NDArray[np.void]
    rows: Vector
    first: dict[tuple[str, ...], int] = field(default_factory=dict)
    asked: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.rows.nbytes + self.chunks.nbytes + self.memories.nbytes

    def nearest(self, vector: Vector, count: int) -> tuple[list[int], list[UUID], float]:
        """The nearest `count` chunks in no order, their memories, and the cosine of the last."""
        # In 16 bits, as Postgres is asked.
        asked = vector.astype(np.float16).astype(np.float32)
        likeness = np.vecdot(self.rows, asked / np.linalg.norm(asked))
        best = np.argpartition(likeness, -count)[-count:] if count < len(likeness) else slice(None)
        memories = [UUID(bytes=one) for one in self.memories[best].tolist()]
        return self.chunks[best].tolist(), memories, float(likeness[best].min())


class Near(Shelf[Kept]):
    """Keeps at most `megabytes` of vectors, those of the tenants that asked last."""

    def __init__(self, database: Database, megabytes: int) -> None:
        super().__init__(megabytes)
        self._db = database

    async def search(
        self, tenant: Tenant, vector: Vector, args: Sequence[Any], own: int
    ) -> list[tuple[UUID, float]]:
        """The nearest memories with their cosines, best first; none where what is kept cannot tell.

        `args`: those of `search_vectors_exact` up to what else is asked of a memory; `own`: how
        many vectors the tenant has.
        """
        kept = self._fitting(tenant, own)
        scopes, limit, narrowed = tuple(args[1]), args[3], args[4] or args[5]
        if kept is None or narrowed:
            return []
        kept.asked += 1
        if kept.asked % AGAIN == 0:
            kept.first.clear()
        for place in range(kept.first.get(scopes, 0), len(WIDTHS)):
            chunks, memories, last = kept.nearest(vector, WIDTHS[place])
            near = (chunks, kept.since, kept.source, memories)
            rows = await tenant.rows("search_vectors_near", *args[:4], *near)
            if not self._stands(tenant, rows):
                return []
            found = [(row["id"], row["score"]) for row in rows if row["id"]]
            # Nothing that was no candidate is as near.
            if len(found) >= limit and found[limit - 1][1] > last + ROUNDED:
                kept.first[scopes] = place
                return found
        kept.first[scopes] = len(WIDTHS)
        return []

    def _stands(self, tenant: Tenant, found: Sequence[asyncpg.Record]) -> bool:
        """Whether the table is the one that was read; notes how much has come since."""
        name = (tenant.id, tenant.vectors)
        if not found[0]["same"]:
            self._drop(name)
            return False
        if found[0]["fresh"] > FRESH:
            self._want(name)
        return True

    def _fitting(self, tenant: Tenant, own: int) -> Kept | None:
        """What is kept of a tenant of `own` vectors; None where it is not worth it, or not yet."""
        fits = LEAST <= own <= MOST and own * LEAST_BYTES <= self._most
        if not (fits and self._db.is_asked_a_lot(tenant.id)):
            return None
        name = (tenant.id, tenant.vectors)
        kept = self._of(name)
        if kept is not None and len(kept.chunks) > 1.2 * own:
            self._want(name)
        return kept

    async def _read(self, name: Name) -> Kept | None:
        tenant, table = name
        async with self._db.reading(tenant) as t:
            t.vectors = table
            row = await t.row("vectors_all", MOST + 1)
        chunks = np.frombuffer((row and row["chunks"]) or b"", ">i8").astype(np.int64)
        if row is None or not LEAST <= len(chunks) <= MOST:
            return None
        rows = await asyncio.to_thread(_decoded, row["vectors"], len(chunks))
        memories = np.frombuffer(row["memories"], "V16")
        return Kept(row["source"], row["since"], chunks, memories, rows)


def _decoded(sent: bytes, count: int) -> Vector:
    """Vectors as Postgres sends them: their dimensions and 0, then each number, in 16 bits."""
    rows: Vector = np.frombuffer(sent, ">f2").reshape(count, -1)[:, 2:].astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return rows

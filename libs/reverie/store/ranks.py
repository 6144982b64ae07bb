"""Ranks of memories: computed elsewhere, kept here.

A tenant may have very many, so they come and stay as arrays, and only what moved is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reverie.domain.edges import EdgeKind
from reverie.domain.pagerank import Ranked, Stored, Weighted
from reverie.store.database import Database

CLOSE_ENOUGH = 1e-7
"""Ranks that moved less than this stay as they stand: else every edge would rewrite them all."""
BATCH = 1000
PART = 10_000
"""Edges that are read, and reckoned with, at once."""

_EDGE = np.dtype([("source", ">i8"), ("target", ">i8"), ("weight", ">f4")])
"""As `rank_edges` puts them together."""
_RANK = np.dtype([("node", ">i8"), ("rank", ">f4")])
"""As `ranks_stored` does; no number where the memory has moved to another scope."""


@dataclass(frozen=True)
class Standing:
    """A tenant's edges, as they stood after the changes that are told of."""

    changes: list[int]
    edges: Stored


class Ranks:
    """The ranks of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def due(self, limit: int) -> list[int]:
        """Tenants whose edges changed since their ranks were computed."""
        return [row["tenant"] for row in await self._db.rows("ranks_due", limit)]

    async def standing(self, tenant: int) -> Standing:
        """What the ranks are computed from. The changes are read first: edges that come between
        are told of again."""
        async with self._db.tenant(tenant) as t:
            changes = await t.rows("rank_changes")
            edges = await t.rows("rank_edges", PART)
        parts = [(EdgeKind(row["kind"]), _edges(row["edges"])) for row in edges]
        return Standing([row["no"] for row in changes], parts)

    async def put(self, tenant: int, ranked: Ranked, changes: Sequence[int]) -> None:
        """Stores the ranks, and that they hold these changes."""
        async with self._db.tenant(tenant) as t:
            stored = np.frombuffer(await t.value("ranks_stored") or b"", _RANK)
            await t.rows("ranks_drop", np.setdiff1d(stored["node"], ranked.nodes).tolist())
            for some in _parts(_moved(stored, ranked)):
                await t.rows("ranks_put", some.nodes.tolist(), some.ranks.tolist())
            await t.rows("rank_changes_done", list(changes))


def _edges(sent: bytes) -> Weighted:
    read = np.frombuffer(sent, _EDGE)
    return Weighted(read["source"], read["target"], read["weight"])


def _moved(stored: NDArray[np.void], ranked: Ranked) -> Ranked:
    """Those whose rank is not stored as it is, nearly; `stored` ascends as they do."""
    before = np.full(len(ranked.nodes), np.nan)
    _, ours, theirs = np.intersect1d(ranked.nodes, stored["node"], True, return_indices=True)
    before[ours] = stored["rank"][theirs]
    moved = ~(np.abs(ranked.ranks - before) <= CLOSE_ENOUGH)
    return Ranked(ranked.nodes[moved], ranked.ranks[moved])


def _parts(ranked: Ranked) -> Iterator[Ranked]:
    for at in range(0, len(ranked.nodes), BATCH):
        yield Ranked(ranked.nodes[at : at + BATCH], ranked.ranks[at : at + BATCH])

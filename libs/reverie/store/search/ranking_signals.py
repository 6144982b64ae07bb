"""Stores PageRank scores and uses of memories for ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from reverie.domain.core.confidence import BOOST, NEIGHBOUR_SHARE
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.graph.pagerank import EdgesByKind, NodeRanks, WeightedEdges
from reverie.store.db.database import Database

RANK_TOLERANCE = 1e-5
"""Smaller changes of a rank are not written: else every edge would rewrite all ranks."""
WRITE_BATCH_SIZE = 1000
READ_BATCH_SIZE = 10_000
"""Edges that are read and processed at once."""

NEIGHBOUR_LIMIT = 20
"""The neighbours of a used memory that are boosted with it."""

_EDGE = np.dtype([("source", ">i8"), ("target", ">i8"), ("weight", ">f4")])
"""The row format of `rank_edges`."""
_RANK = np.dtype([("node", ">i8"), ("rank", ">f4")])
"""The row format of `ranks_stored`; NaN if the memory has moved to another scope."""


@dataclass(frozen=True)
class EdgeSnapshot:
    """The edges within each scope of a tenant, after the changes listed in `changes`."""

    changes: list[int]
    scopes: Sequence[EdgesByKind]


class RankStore:
    """The ranks of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_due_tenants(self, limit: int) -> list[int]:
        """Tenants whose edges changed since their ranks were computed."""
        return [row["tenant"] for row in await self._db.fetch_rows("ranks_due", limit)]

    async def load_edges(self, tenant: int) -> EdgeSnapshot:
        """Loads the edges for the ranks.

        The changes are read first: edges added in between are reported again.
        """
        async with self._db.tenant_transaction(tenant) as connection:
            changes = await connection.fetch_rows("rank_changes")
            edges = await connection.fetch_rows("rank_edges", READ_BATCH_SIZE)
        scopes: list[EdgesByKind] = [
            [(EdgeKind(row["kind"]), _decode_edges(row["edges"])) for row in rows]
            for _, rows in groupby(edges, lambda row: row["scope"])
        ]
        return EdgeSnapshot([row["no"] for row in changes], scopes)

    async def put(self, tenant: int, ranked: NodeRanks, changes: Sequence[int]) -> None:
        """Stores the ranks, and the changes that they include."""
        async with self._db.tenant_transaction(tenant) as connection:
            stored = np.frombuffer(await connection.fetch_value("ranks_stored") or b"", _RANK)
            await connection.fetch_rows(
                "ranks_delete", np.setdiff1d(stored["node"], ranked.nodes).tolist()
            )
            for batch in _split_batches(_find_changed_ranks(stored, ranked)):
                await connection.fetch_rows("ranks_put", batch.nodes.tolist(), batch.ranks.tolist())
            await connection.fetch_rows("rank_changes_delete", list(changes))


def _decode_edges(raw: bytes) -> WeightedEdges:
    edges = np.frombuffer(raw, _EDGE)
    return WeightedEdges(edges["source"], edges["target"], edges["weight"])


def _find_changed_ranks(stored: NDArray[np.void], ranked: NodeRanks) -> NodeRanks:
    """Ranks that differ from the stored ones by more than the tolerance.

    `stored` is in ascending order, as the new ranks are.
    """
    previous = np.full(len(ranked.nodes), np.nan)
    _, ours, theirs = np.intersect1d(ranked.nodes, stored["node"], True, return_indices=True)
    previous[ours] = stored["rank"][theirs]
    # A new rank and one of another scope are compared with NaN, and so count as changed.
    changed = ~(np.abs(ranked.ranks - previous) <= RANK_TOLERANCE)
    return NodeRanks(ranked.nodes[changed], ranked.ranks[changed])


def _split_batches(ranked: NodeRanks) -> Iterator[NodeRanks]:
    for start in range(0, len(ranked.nodes), WRITE_BATCH_SIZE):
        yield NodeRanks(
            ranked.nodes[start : start + WRITE_BATCH_SIZE],
            ranked.ranks[start : start + WRITE_BATCH_SIZE],
        )


class UsageRecord(NamedTuple):
    """Memories that somebody, a session or a key in an hour, used."""

    used_by: str
    memories: Sequence[UUID]


class UsageStore:
    """Counts each reader's use of a memory once; `boost`: the confidence that a use adds."""

    def __init__(self, database: Database, boost: float = BOOST) -> None:
        self._db, self._boost = database, boost

    async def record(self, tenant: int, reads: Sequence[str], uses: Sequence[UsageRecord]) -> int:
        """Boosts the memories that `reads` covers and, less, their neighbours.

        Returns the number of new uses.
        """
        pairs = list(
            dict.fromkeys((use.used_by, memory) for use in uses for memory in use.memories)
        )
        found = await self._db.call(
            "record_memory_uses",
            tenant,
            [used_by for used_by, _ in pairs],
            [memory for _, memory in pairs],
            list(reads),
            self._boost,
            self._boost * NEIGHBOUR_SHARE,
            NEIGHBOUR_LIMIT,
        )
        return int(found)

"""Ranks of memories: computed elsewhere, kept here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct

from reverie.domain.edges import EdgeKind
from reverie.domain.pagerank import Stored
from reverie.store.database import Database

CLOSE_ENOUGH = 1e-7
"""Ranks that moved less than this stay as they stand: else every edge would rewrite them all."""


_EDGE = Struct(">qqd")
"""Source, target, weight: as `rank_edges` puts them together."""


@dataclass(frozen=True)
class Standing:
    """A tenant's edges as they stood after the changes that are told of.

    There may be very many: nodes are numbers, and edges stay as Postgres sends them, by kind.
    """

    changes: list[int]
    sent: list[tuple[EdgeKind, bytes]]

    @property
    def edges(self) -> Iterator[Stored[int]]:
        """The edges, one by one."""
        for kind, edges in self.sent:
            for src, dst, weight in _EDGE.iter_unpack(edges):
                yield src, kind, dst, weight


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
            edges = await t.rows("rank_edges")
        sent = [(EdgeKind(row["kind"]), row["edges"]) for row in edges]
        return Standing([row["no"] for row in changes], sent)

    async def put(self, tenant: int, ranks: Mapping[int, float], changes: Sequence[int]) -> None:
        """Stores the ranks, and that they hold these changes."""
        ids = sorted(ranks)
        async with self._db.tenant(tenant) as t:
            await t.rows("ranks_drop", ids)
            await t.rows("ranks_put", ids, [ranks[one] for one in ids], CLOSE_ENOUGH)
            await t.rows("rank_changes_done", list(changes))

"""Reads the memory graph: subgraphs, the impact of a file or entity, and counts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.domain.core.kinds import ANCHOR_KINDS, EdgeKind
from reverie.domain.entities.file_paths import is_same_file
from reverie.domain.graph.clustering import count_component_sizes
from reverie.domain.staleness.propagation import (
    DIRECT_SCORE,
    MAX_DEPTH,
    AffectedMemory,
    DependencyEdge,
    spread_impact,
)
from reverie.store.db.database import Database, TenantConnection

EDGES_PER_NODE = 20
REACHED_LIMIT = 1000
RANKING_SLACK = 100
"""Extra rows ranked beyond a page, for rows that were added before its cursor in the meantime."""


@dataclass(frozen=True)
class SubgraphRequest:
    """Limits of a subgraph: depth, edges a memory, memories in total, seconds in total."""

    depth: int
    fan_out: int
    limit: int
    statuses: Sequence[str]
    as_of: datetime | None = None
    seconds: float = 2.0


@dataclass
class SubgraphRecords:
    """A subgraph: the depth of each memory, and the limit that stopped the search."""

    depths: dict[UUID, int]
    nodes: list[asyncpg.Record] = field(default_factory=list)
    edges: list[asyncpg.Record] = field(default_factory=list)
    follows: list[asyncpg.Record] = field(default_factory=list)
    truncated_by: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class RankingCursor:
    """The end of a ranking page: the row count so far, and the last row."""

    count: int = 0
    last: tuple[float, UUID] | None = None

    def find_start(self, ranked: Sequence[UUID], affected: Mapping[UUID, AffectedMemory]) -> int:
        """Returns the current position after the cursor, even if rows were added or removed."""
        if self.last is None:
            return self.count
        score, memory_id = self.last
        last_key = (-score, memory_id)
        return bisect_right(
            ranked, last_key, key=lambda candidate: (-affected[candidate].score, candidate)
        )

    def advance(
        self, page: Sequence[UUID], start: int, affected: Mapping[UUID, AffectedMemory]
    ) -> RankingCursor:
        """Returns the cursor at the end of a page that began after `start`."""
        last = (affected[page[-1]].score, page[-1]) if page else self.last
        return RankingCursor(start + len(page), last)


RANKING_START = RankingCursor()


@dataclass(frozen=True)
class ImpactRecords:
    """The impact of a change: the named anchors that are touched, the affected memories, and a page
    of rows.

    `cursor`: the end of the page.
    """

    names: list[str]
    affected: Mapping[UUID, AffectedMemory]
    rows: list[asyncpg.Record]
    truncated: bool
    cursor: RankingCursor = RANKING_START


@dataclass(frozen=True)
class GraphCounts:
    """A graph in numbers; `nodes` by (kind, status), `sizes` of components but of lone nodes."""

    nodes: Mapping[tuple[str, str], int]
    edges: Mapping[str, int]
    sizes: Sequence[int]

    @property
    def total(self) -> int:
        """All nodes."""
        return sum(self.nodes.values())

    @property
    def memories(self) -> int:
        """The nodes that are no anchors."""
        return sum(count for (kind, _), count in self.nodes.items() if kind not in ANCHOR_KINDS)

    @property
    def orphans(self) -> int:
        """The nodes without an edge."""
        return self.total - sum(self.sizes)


class GraphStore:
    """The graphs of all tenants, each call within one and within what the key may read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load_subgraph(
        self, principal: Principal, root: UUID, request: SubgraphRequest
    ) -> SubgraphRecords:
        """Loads the memories around a memory. Raises `NotFound` if the key may not read it.

        Every limit of `request` applies; the result is complete up to the first limit reached.
        """
        subgraph = SubgraphRecords({root: 0})
        reads = list(principal.reads)
        async with self._db.snapshot(principal.tenant) as connection:
            if not await connection.fetch_rows("graph_nodes", [root], reads, request.as_of):
                raise NotFound("memory", str(root))
        await self._traverse(principal, subgraph, request)
        ids, edge_limit = list(subgraph.depths), request.limit * EDGES_PER_NODE
        async with self._db.snapshot(principal.tenant) as connection:
            subgraph.nodes = await connection.fetch_rows("graph_nodes", ids, reads, request.as_of)
            edges = await connection.fetch_rows("graph_edges", ids, edge_limit + 1, request.as_of)
            subgraph.follows = await connection.fetch_rows(
                "graph_follows", ids, reads, request.statuses, request.as_of
            )
        subgraph.edges = edges[:edge_limit]
        if len(edges) > edge_limit:
            subgraph.truncated_by.add("edges")
        return subgraph

    async def _traverse(
        self, principal: Principal, subgraph: SubgraphRecords, request: SubgraphRequest
    ) -> None:
        """Breadth first, each memory once, until nothing is new or a bound is met."""
        deadline = monotonic() + request.seconds
        frontier = list(subgraph.depths)
        for depth in range(1, request.depth + 1):
            try:
                found = await self._load_neighbours(principal, frontier, request, deadline)
            except asyncpg.QueryCanceledError:
                subgraph.truncated_by.add("time")
                return
            frontier = _add_neighbours(subgraph, found, depth, request)
            if not frontier:
                return

    async def _load_neighbours(
        self,
        principal: Principal,
        frontier: Sequence[UUID],
        request: SubgraphRequest,
        deadline: float,
    ) -> list[asyncpg.Record]:
        remaining_ms = max(1, int((deadline - monotonic()) * 1000))
        async with self._db.snapshot(principal.tenant) as connection:
            await connection.fetch_value("statement_timeout_set", str(remaining_ms))
            return await connection.fetch_rows(
                "graph_neighbours",
                list(frontier),
                list(principal.reads),
                request.fan_out + 1,
                request.statuses,
                request.as_of,
            )

    async def find_file_impact(
        self,
        principal: Principal,
        path: str,
        project: str | None,
        limit: int,
        after: RankingCursor = RANKING_START,
    ) -> ImpactRecords:
        """Finds memories that a change of a file would make doubtful, most doubtful first.

        Continues after the cursor.
        """
        name = path.rsplit("/", 1)[-1].lower()
        async with self._db.snapshot(principal.tenant) as connection:
            anchors = await connection.fetch_rows("impact_anchors", name, project)
            files = {
                row["node"]: row["path"] for row in anchors if is_same_file(row["named"], path)
            }
            return await _find_impact(connection, principal, files, limit, after)

    async def find_entity_impact(
        self,
        principal: Principal,
        names: Sequence[str],
        project: str | None,
        limit: int,
        after: RankingCursor = RANKING_START,
    ) -> ImpactRecords:
        """The same of an entity that goes by any of `names`."""
        keys = [f"entity:{name}" for name in names]
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "impact_entities", keys, list(principal.reads), project
            )
            nodes = {row["node"]: row["path"] for row in found}
            return await _find_impact(connection, principal, nodes, limit, after)

    async def load_counts(
        self, principal: Principal, patterns: Sequence[str] | None
    ) -> GraphCounts:
        """Counts of all that may be read, or of it what the patterns `patterns` cover."""
        scopes = (list(principal.reads), list(patterns) if patterns is not None else None)
        async with self._db.snapshot(principal.tenant) as connection:
            counts = await connection.fetch_rows("graph_counts", *scopes)
            links = await connection.fetch_rows("graph_all_edges", *scopes)
            follows = await connection.fetch_value("graph_follow_count", *scopes)
        kinds = Counter(row["kind"] for row in links)
        if follows:
            kinds[EdgeKind.FOLLOWS.value] = follows
        nodes = {(row["kind"], row["status"]): row["many"] for row in counts}
        sizes = count_component_sizes((row["src"], row["dst"]) for row in links)
        return GraphCounts(nodes, dict(sorted(kinds.items())), sizes)


def _add_neighbours(
    subgraph: SubgraphRecords, found: Sequence[asyncpg.Record], depth: int, request: SubgraphRequest
) -> list[UUID]:
    """Adds the neighbours of one step; returns the new memories."""
    taken_per_source: Counter[UUID] = Counter()
    fresh: list[UUID] = []
    for row in found:
        source, target = row["near"], row["far"]
        taken_per_source[source] += 1
        if taken_per_source[source] > request.fan_out:
            subgraph.truncated_by.add("fan_out")
        elif target not in subgraph.depths:
            if len(subgraph.depths) >= request.limit:
                subgraph.truncated_by.add("nodes")
                break
            subgraph.depths[target] = depth
            fresh.append(target)
    return fresh


async def _find_impact(
    connection: TenantConnection,
    principal: Principal,
    anchors: Mapping[UUID, str],
    limit: int,
    after: RankingCursor,
) -> ImpactRecords:
    """Finds memories that a change of these anchors would make doubtful.

    If more touch them than requested, dependent memories are left out: they are less doubtful.
    """
    reads = list(principal.reads)
    limit_with_slack = after.count + limit + (RANKING_SLACK if after.count else 0)
    touched = await connection.fetch_rows("impact_touched", list(anchors), reads)
    found = await connection.fetch_rows(
        "impact_touching", list(anchors), reads, limit_with_slack + 1
    )
    affected = {
        row["id"]: AffectedMemory(
            DIRECT_SCORE, (anchors[row["node"]], f"<-{EdgeKind.TOUCHES.value}-", str(row["id"]))
        )
        for row in found
    }
    if len(found) <= limit_with_slack:
        affected = await _propagate_impact(connection, principal, affected)
    best = _sort_by_score(affected)
    start = after.find_start(best, affected)
    page = best[start : start + limit]
    rows = await connection.fetch_rows("impact_memories", page, reads)
    order = {memory_id: index for index, memory_id in enumerate(page)}
    rows.sort(key=lambda row: order[row["id"]])
    touched_names = sorted({anchors[row["node"]] for row in touched})
    truncated = len(best) > start + limit or len(found) > limit_with_slack
    return ImpactRecords(
        touched_names, affected, rows, truncated, after.advance(page, start, affected)
    )


def _sort_by_score(affected: Mapping[UUID, AffectedMemory]) -> list[UUID]:
    """The most doubtful first."""
    return sorted(affected, key=lambda memory_id: (-affected[memory_id].score, memory_id))


async def _propagate_impact(
    connection: TenantConnection, principal: Principal, touching: Mapping[UUID, AffectedMemory]
) -> dict[UUID, AffectedMemory]:
    """Returns memories that touch an anchor, and those that doubt reaches within `MAX_DEPTH` edges.

    Of the memories reached by an edge, the `REACHED_LIMIT` most doubtful are followed further.
    """
    affected = dict(touching)
    reached = dict(affected)
    for _ in range(MAX_DEPTH):
        sources = _sort_by_score(reached)[:REACHED_LIMIT]
        found = await connection.fetch_rows(
            "impact_propagation_edges", sources, list(principal.reads), EDGES_PER_NODE
        )
        edges = [
            DependencyEdge(
                row["near"], row["far"], EdgeKind(row["kind"]), row["outward"], row["weight"]
            )
            for row in found
        ]
        reached = spread_impact(affected, edges)
        if not reached:
            break
        affected |= reached
    return affected

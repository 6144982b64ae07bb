"""Routes for a memory's subgraph, the impact of a change, and graph statistics."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Name, NonBlankStr, RepoPath, Timestamp
from reverie.contracts.memories.git import StaleEvidence
from reverie.contracts.memories.graph import (
    GraphEdge,
    GraphNode,
    GraphStats,
    ImpactItem,
    ImpactPage,
    SubgraphResponse,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope, slugify
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.ids import short_id
from reverie.domain.entities.recognition import candidate_labels
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, PageQuery, decode_cursor, encode_cursor
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams
from reverie.store.graph.graph import (
    RANKING_START,
    ImpactRecords,
    RankingCursor,
    SubgraphRequest,
)
from reverie.store.memories.memories import VISIBLE_STATUSES
from reverie_services.recall.dependencies import GraphDependencies

MAX_DEPTH = 5

MAX_RANKED = 10_000

"""The most entries of a ranking."""


class SubgraphQuery(QueryParams):
    """The extent of a subgraph around a memory."""

    depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = 2
    fan_out: Annotated[int, Field(ge=1, le=50)] = 10
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    as_of: Timestamp | None = None
    include: list[Literal["archived"]] | None = None


class ImpactQuery(PageQuery):
    """A file or an entity as somebody names it; without a project, those of all."""

    path: RepoPath | None = None
    entity: Name | None = None
    project: Name | None = None


class ImpactCursor(CursorPosition):
    """A cursor in a ranking: how many came before, and the last of them."""

    skip: Annotated[int, Field(ge=0, le=MAX_RANKED)]
    score: float | None = None
    id: UUID | None = None

    @classmethod
    def from_ranking_cursor(cls, cursor: RankingCursor) -> ImpactCursor:
        """The cursor of a place."""
        score, last = cursor.last or (None, None)
        return cls(skip=cursor.count, score=score, id=last)

    @property
    def ranking_cursor(self) -> RankingCursor:
        """The cursor of the ranking position."""
        last = None if self.score is None or self.id is None else (self.score, self.id)
        return RankingCursor(self.skip, last)


class StatsQuery(QueryParams):
    """A project with all in it, one scope, or all that the key may read."""

    project: Name | None = None
    scope: NonBlankStr | None = None


routes = RouteTable[GraphDependencies]()


@routes.add("GET /v1/memories/{id}/subgraph")
async def get_subgraph(
    deps: GraphDependencies, call: Call[None, SubgraphQuery]
) -> SubgraphResponse:
    """Get the graph around a memory, now or as of a moment."""
    principal, query = call.principal, call.query
    root = await deps.memories.resolve(principal, call.path["id"], query.as_of)
    request = SubgraphRequest(
        query.depth,
        query.fan_out,
        query.limit,
        (*VISIBLE_STATUSES, *(query.include or ())),
        query.as_of,
    )
    records = await deps.graph.load_subgraph(principal, root, request)
    nodes = [
        GraphNode(**row, short_id=short_id(row["id"]), depth=records.depths[row["id"]])
        for row in records.nodes
    ]
    return SubgraphResponse(
        root=root,
        depth=query.depth,
        nodes=sorted(nodes, key=lambda node: (node.depth, node.id)),
        edges=[GraphEdge(**row) for row in (*records.edges, *records.follows)],
        truncated=bool(records.truncated_by),
        truncated_by=sorted(records.truncated_by),
        as_of=query.as_of,
    )


@routes.add("GET /v1/impact")
async def get_impact(deps: GraphDependencies, call: Call[None, ImpactQuery]) -> ImpactPage:
    """List memories that a change of a file or an entity could make stale."""
    principal, query = call.principal, call.query
    project = slugify(query.project) if query.project else None
    graph, after = deps.graph, decode_cursor(query.cursor, ImpactCursor)
    cursor = after.ranking_cursor if after else RANKING_START
    if query.path and query.entity:
        raise InvalidInput("entity", "give a path or an entity, not both")
    if query.entity:
        records = await graph.find_entity_impact(
            principal, candidate_labels(query.entity), project, query.limit, cursor
        )
        target = {"entity": query.entity, "entities": records.names}
    elif query.path:
        path = query.path.removeprefix("./")
        records = await graph.find_file_impact(principal, path, project, query.limit, cursor)
        target = {"path": path, "files": records.names}
    else:
        raise InvalidInput("path", "give the path of a file, or an entity")
    has_more = records.truncated and records.cursor.count <= MAX_RANKED
    next_cursor = (
        encode_cursor(ImpactCursor.from_ranking_cursor(records.cursor)) if has_more else None
    )
    items = [_build_impact_item(records, row) for row in records.rows]
    return ImpactPage(items=items, truncated=records.truncated, next=next_cursor, **target)


@routes.add("GET /v1/graph/stats")
async def get_stats(deps: GraphDependencies, call: Call[None, StatsQuery]) -> GraphStats:
    """Count memories, edges and components."""
    scopes = _resolve_stats_scopes(call.principal, call.query)
    counts = await deps.graph.load_counts(call.principal, scopes)
    by_kind, by_status = Counter[str](), Counter[str]()
    for (kind, status), count in counts.nodes.items():
        by_kind[kind] += count
        by_status[status] += count
    return GraphStats(
        nodes=counts.total,
        memories=counts.memories,
        nodes_by_kind=dict(sorted(by_kind.items())),
        nodes_by_status=dict(sorted(by_status.items())),
        edges=sum(counts.edges.values()),
        edges_by_type=dict(counts.edges),
        components=len(counts.sizes) + counts.orphans,
        largest_component=max((*counts.sizes, min(counts.total, 1))),
        orphans=counts.orphans,
    )


def _resolve_stats_scopes(principal: Principal, query: StatsQuery) -> list[str] | None:
    """The patterns that the parameters name; None for all that may be read."""
    if query.project and query.scope:
        raise InvalidInput("scope", "give a project or a scope, not both")
    if query.project:
        return [f"project/{slugify(query.project)}/*"]
    if query.scope is None:
        return None
    scope = parse_scope(query.scope)
    principal.check_read([scope])
    return [scope]


def _build_impact_item(records: ImpactRecords, row: Any) -> ImpactItem:
    affected = records.affected[row["id"]]
    return ImpactItem(
        id=row["id"],
        short_id=short_id(row["id"]),
        kind=row["kind"],
        label=row["key"] or row["content"][:120],
        scope=row["scope"],
        score=round(affected.score, 4),
        grade=affected.grade,
        path=list(affected.path),
        staleness=round(row["staleness"], 4),
        stale_grade=row["stale_grade"],
        evidence=[StaleEvidence.model_validate(mark) for mark in row["evidence"] or []],
    )

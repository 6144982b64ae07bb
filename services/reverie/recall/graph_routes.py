"""What recall answers of the graph over HTTP: surroundings, impact, statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Moment, Name, RepoPath, Text
from reverie.contracts.git import Evidence
from reverie.contracts.graph import (
    GraphEdge,
    GraphStats,
    Impact,
    ImpactItem,
    Node,
    Subgraph,
)
from reverie.domain.access import Principal
from reverie.domain.edges import EdgeKind
from reverie.domain.entities import labels_of
from reverie.domain.errors import Invalid
from reverie.domain.ids import short_id
from reverie.domain.scopes import parse_scope, slug
from reverie.recall.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.paging import PageQuery, Position, decode_cursor, encode_cursor
from reverie.runtime.routes import Route
from reverie.store.graph import START, Around, Behind, Numbers, Picture, Place
from reverie.store.memories import VISIBLE

DEEPEST = 5
MOST_RANKED = 10_000
"""How far a ranking is told."""


class SubgraphQuery(Query):
    """How far to look around a memory."""

    depth: Annotated[int, Field(ge=1, le=DEEPEST)] = 2
    fan_out: Annotated[int, Field(ge=1, le=50)] = 10
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    as_of: Moment | None = None
    include: list[Literal["archived"]] | None = None


class ImpactQuery(PageQuery):
    """A file or an entity as somebody names it; without a project, those of all."""

    path: RepoPath | None = None
    entity: Name | None = None
    project: Name | None = None


class ByRank(Position):
    """A cursor in a ranking: how many came before, and the last of them."""

    skip: Annotated[int, Field(ge=0, le=MOST_RANKED)]
    score: float | None = None
    id: UUID | None = None

    @classmethod
    def of(cls, place: Place) -> ByRank:
        """The cursor of a place."""
        score, last = place.last or (None, None)
        return cls(skip=place.count, score=score, id=last)

    @property
    def place(self) -> Place:
        """Where it stands."""
        last = None if self.score is None or self.id is None else (self.score, self.id)
        return Place(self.skip, last)


class StatsQuery(Query):
    """A project with all in it, one scope, or all that the key may read."""

    project: Name | None = None
    scope: Text | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of the graph."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/memories/{id}/subgraph", doors.subgraph, query=SubgraphQuery,
              answer=Subgraph, summary="What lies around a memory, also as it was known once"),
        Route("GET", "/v1/impact", doors.impact, query=ImpactQuery, answer=Impact,
              summary="Memories that a change of a file or an entity would make doubtful"),
        Route("GET", "/v1/graph/stats", doors.stats, query=StatsQuery, answer=GraphStats,
              summary="The graph in numbers"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def subgraph(self, call: Call[None, SubgraphQuery]) -> Subgraph:
        """`GET /v1/memories/{id}/subgraph`."""
        who, query = call.principal, call.query
        if query.as_of:
            root = await self._parts.past.resolve(who, call.path["id"], query.as_of)
        else:
            root = await self._parts.memories.resolve(who, call.path["id"])
        ask = Around(
            query.depth,
            query.fan_out,
            query.limit,
            (*VISIBLE, *(query.include or ())),
            query.as_of,
        )
        picture = await self._parts.graph.around(who, root, ask)
        return Subgraph(
            root=root,
            depth=query.depth,
            nodes=_nodes(picture),
            edges=[*_edges(picture), *_follows(picture)],
            truncated=bool(picture.cut_by),
            cut_by=sorted(picture.cut_by),
            as_of=query.as_of,
        )

    async def impact(self, call: Call[None, ImpactQuery]) -> Impact:
        """`GET /v1/impact`."""
        who, query = call.principal, call.query
        project = slug(query.project) if query.project else None
        graph, after = self._parts.graph, decode_cursor(query.cursor, ByRank)
        place = after.place if after else START
        if query.path and query.entity:
            raise Invalid("entity", "give a path or an entity, not both")
        if query.entity:
            found = await graph.behind_entity(
                who, labels_of(query.entity), project, query.limit, place
            )
            named = {"entity": query.entity, "entities": found.names}
        elif query.path:
            path = query.path.removeprefix("./")
            found = await graph.behind(who, path, project, query.limit, place)
            named = {"path": path, "files": found.names}
        else:
            raise Invalid("path", "give the path of a file, or an entity")
        goes_on = found.truncated and found.until.count <= MOST_RANKED
        following = encode_cursor(ByRank.of(found.until)) if goes_on else None
        items = [_item(found, row) for row in found.rows]
        return Impact(items=items, truncated=found.truncated, next=following, **named)

    async def stats(self, call: Call[None, StatsQuery]) -> GraphStats:
        """`GET /v1/graph/stats`."""
        return _stats(
            await self._parts.graph.numbers(call.principal, _within(call.principal, call.query))
        )


def _within(who: Principal, query: StatsQuery) -> list[str] | None:
    """The patterns that the parameters name; None for all that may be read."""
    if query.project and query.scope:
        raise Invalid("scope", "give a project or a scope, not both")
    if query.project:
        return [f"project/{slug(query.project)}/*"]
    if query.scope is None:
        return None
    scope = parse_scope(query.scope)
    who.check_read([scope])
    return [scope]


def _nodes(picture: Picture) -> list[Node]:
    nodes = [
        Node(
            id=row["id"],
            short_id=short_id(row["id"]),
            kind=row["kind"],
            label=row["label"],
            scope=row["scope"],
            status=row["status"],
            key=row["key"],
            created_at=row["created"],
            depth=picture.depths[row["id"]],
        )
        for row in picture.nodes
    ]
    return sorted(nodes, key=lambda node: (node.depth, node.id))


def _edges(picture: Picture) -> list[GraphEdge]:
    return [
        GraphEdge(
            id=row["id"],
            source=row["src"],
            target=row["dst"],
            type=row["kind"],
            weight=row["weight"],
            metadata=row["meta"],
            known_from=row["known_from"],
            known_to=row["known_to"],
            who=row["who"],
        )
        for row in picture.edges
    ]


def _follows(picture: Picture) -> list[GraphEdge]:
    return [
        GraphEdge(
            source=row["src"],
            target=row["dst"],
            type=EdgeKind.FOLLOWS.value,
            known_from=row["known_from"],
        )
        for row in picture.follows
    ]


def _item(found: Behind, row: Any) -> ImpactItem:
    affected = found.affected[row["id"]]
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
        evidence=[Evidence.model_validate(one) for one in row["evidence"] or []],
    )


def _stats(numbers: Numbers) -> GraphStats:
    return GraphStats(
        nodes=numbers.total,
        memories=numbers.memories,
        nodes_by_kind=_summed((kind, many) for (kind, _), many in numbers.nodes.items()),
        nodes_by_status=_summed((status, many) for (_, status), many in numbers.nodes.items()),
        edges=sum(numbers.edges.values()),
        edges_by_type=dict(numbers.edges),
        components=len(numbers.sizes) + numbers.orphans,
        largest_component=max((*numbers.sizes, min(numbers.total, 1))),
        orphans=numbers.orphans,
    )


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for name, many in counts:
        total[name] += many
    return dict(sorted(total.items()))

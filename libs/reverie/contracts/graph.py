"""Bodies of the memory graph: links, subgraphs, impact and statistics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Name, PageResponse, RequestBody, ResponseBody, UnitInterval
from reverie.contracts.git import StaleEvidence
from reverie.contracts.memories import EdgeBody


class CreateLinkRequest(RequestBody):
    """`POST /v1/links`: one edge; the scope of `from` must be writable."""

    source: UUID = Field(alias="from")
    target: UUID = Field(alias="to")
    type: Name
    weight: UnitInterval = 1.0
    metadata: dict[str, Any] = Field(default_factory=dict)


class CreateLinkResponse(ResponseBody):
    """The edge that stands; `created` is false where it stood before."""

    id: UUID
    created: bool = True
    redactions: int = 0


class DeleteLinkResponse(ResponseBody):
    """`DELETE /v1/links/{id}`: the edge is closed; reads as of an earlier moment still show it."""

    id: UUID


class GraphNode(ResponseBody):
    """A memory of a graph; `depth` counts the edges from the root."""

    id: UUID
    short_id: str
    kind: str
    label: str
    scope: str
    status: str
    key: str | None = None
    created_at: AwareDatetime
    depth: int


class GraphEdge(EdgeBody):
    """An edge and since when, and by whom, it is known; a `follows` edge is derived: no id."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    known_from: AwareDatetime | None = None
    known_to: AwareDatetime | None = None
    actor: str | None = None


class SubgraphResponse(ResponseBody):
    """`GET /v1/memories/{id}/subgraph`. `truncated` says what cut it: nodes, fan_out or time."""

    root: UUID
    depth: int
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool = False
    truncated_by: list[str] = Field(default_factory=list)
    as_of: AwareDatetime | None = None


class ImpactItem(ResponseBody):
    """A memory that a change would make doubtful; `path` leads to it from what changes.

    `score` is how much; `staleness` and `evidence` say what stands against it already.
    """

    id: UUID
    short_id: str
    kind: str
    label: str
    scope: str
    score: float
    grade: str
    path: list[str]
    staleness: float = 0.0
    stale_grade: str | None = None
    evidence: list[StaleEvidence] = Field(default_factory=list)


class ImpactPage(PageResponse):
    """`GET /v1/impact`: the weightiest first; `files` are the anchors that the path names.

    `entities` are those that the entity names.
    """

    path: str | None = None
    entity: str | None = None
    files: list[str] = Field(default_factory=list)
    entities: list[str] = Field(default_factory=list)
    items: list[ImpactItem]
    truncated: bool = False


class GraphStats(ResponseBody):
    """`GET /v1/graph/stats`: what may be read and was not forgotten, counted exactly.

    `memories` are nodes that are no anchors. `components` counts every orphan as one of its own;
    `edges_by_type` counts the derived `follows` too, which join no components.
    """

    nodes: int
    memories: int
    nodes_by_kind: dict[str, int]
    nodes_by_status: dict[str, int]
    edges: int
    edges_by_type: dict[str, int]
    components: int
    largest_component: int
    orphans: int

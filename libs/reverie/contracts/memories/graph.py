"""Bodies of the memory graph: links, subgraphs, impact and statistics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Name, PageResponse, RequestBody, ResponseBody, UnitInterval
from reverie.contracts.memories.git import StaleEvidence
from reverie.contracts.memories.memories import EdgeBody


class CreateLinkRequest(RequestBody):
    """`POST /v1/links`: create an edge. The key must have write access to the scope of `from`."""

    source: UUID = Field(alias="from")
    target: UUID = Field(alias="to")
    type: Name
    weight: UnitInterval = 1.0
    metadata: dict[str, Any] = Field(default_factory=dict)


class CreateLinkResponse(ResponseBody):
    """The edge. `created` is false if it existed before."""

    id: UUID
    created: bool = True
    redactions: int = 0


class DeleteLinkResponse(ResponseBody):
    """`DELETE /v1/links/{id}`: the edge is closed. Reads as of an earlier time still show it."""

    id: UUID


class GraphNode(ResponseBody):
    """A memory in a graph. `depth` counts the edges from the root."""

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
    """An edge, with its actor and its period. A `follows` edge is derived and has no `id`."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    known_from: AwareDatetime | None = None
    known_to: AwareDatetime | None = None
    actor: str | None = None


class SubgraphResponse(ResponseBody):
    """`GET /v1/memories/{id}/subgraph`.

    `truncated_by` names the limits that were reached: `nodes`, `fan_out` or `time`.
    """

    root: UUID
    depth: int
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    truncated: bool = False
    truncated_by: list[str] = Field(default_factory=list)
    as_of: AwareDatetime | None = None


class ImpactItem(ResponseBody):
    """A memory that a change could make stale. `path` leads from the changed node to it.

    `score` is the strength of the effect. `staleness` and `evidence` describe its present stale
    marks.
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
    """`GET /v1/impact`, highest score first.

    `files` are the anchors that match the path. `entities` are the entities that match the given
    name.
    """

    path: str | None = None
    entity: str | None = None
    files: list[str] = Field(default_factory=list)
    entities: list[str] = Field(default_factory=list)
    items: list[ImpactItem]
    truncated: bool = False


class GraphStats(ResponseBody):
    """`GET /v1/graph/stats`: exact counts of readable memories that are not forgotten.

    `memories` excludes anchors. `components` counts each orphan as one component. `edges_by_type`
    includes derived `follows` edges; `components` ignores them.
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

"""Calls about the graph: edges, subgraphs, impact of a change, statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, quote_segment

if TYPE_CHECKING:
    from reverie.contracts import graph as of_graph
else:
    of_graph = LazyModule("reverie.contracts.graph")

Id = UUID | str


class GraphCalls(ClientBase):
    """Calls about the graph."""

    async def link(
        self,
        source: Id,
        target: Id,
        type: str,
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> of_graph.CreateLinkResponse:
        """Creates an edge between two memories; `weight` 0 to 1. Refused if it closes a cycle."""
        body = {"from": source, "to": target, "type": type, "weight": weight}
        body |= drop_none(metadata=metadata)
        return await self.request(of_graph.CreateLinkResponse, "POST", "/v1/links", body=body)

    async def unlink(self, id: Id) -> of_graph.DeleteLinkResponse:
        """Closes an edge, by its own id."""
        return await self.request(
            of_graph.DeleteLinkResponse, "DELETE", f"/v1/links/{quote_segment(id)}"
        )

    async def get_subgraph(
        self,
        id: Id,
        *,
        depth: int = 2,
        fan_out: int = 10,
        limit: int = 100,
        as_of: datetime | None = None,
        include: Sequence[Literal["archived"]] | None = None,
    ) -> of_graph.SubgraphResponse:
        """The surroundings of a memory; `depth` in edges, `limit` in memories."""
        query = {"depth": depth, "fan_out": fan_out, "limit": limit}
        query |= drop_none(as_of=as_of, include=include)
        return await self.request(
            of_graph.SubgraphResponse,
            "GET",
            f"/v1/memories/{quote_segment(id)}/subgraph",
            query=query,
        )

    async def list_impact(
        self,
        path: str | None = None,
        *,
        entity: str | None = None,
        project: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> of_graph.ImpactPage:
        """Lists the memories that a change of a file, or of an entity, would make doubtful.

        At most 200 at once; `cursor`: the `next` of the previous answer.
        """
        query = drop_none(path=path, entity=entity, project=project, limit=limit, cursor=cursor)
        return await self.request(of_graph.ImpactPage, "GET", "/v1/impact", query=query)

    async def get_graph_stats(
        self, *, project: str | None = None, scope: str | None = None
    ) -> of_graph.GraphStats:
        """Returns counts of the graph that the key may read."""
        query = drop_none(project=project, scope=scope)
        return await self.request(of_graph.GraphStats, "GET", "/v1/graph/stats", query=query)

"""Calls about the graph: edges, subgraphs, impact of a change, statistics, linked projects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.base import ClientBase, LazyModule, drop_none, quote_segment

if TYPE_CHECKING:
    from reverie.contracts import projects as of_projects
    from reverie.contracts.memories import graph as of_graph
else:
    of_graph = LazyModule("reverie.contracts.memories.graph")
    of_projects = LazyModule("reverie.contracts.projects")

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

    async def recall_projects(self, query: str) -> of_projects.RecallProjectsResponse:
        """The projects that know the answer to a question, those that know most first."""
        body = {"query": query}
        return await self.request(
            of_projects.RecallProjectsResponse, "POST", "/v1/recall/projects", body=body
        )

    def list_project_links(self, name: str) -> AsyncIterator[of_projects.ProjectLinkBody]:
        """The projects that are linked to a project."""
        path = f"/v1/projects/{quote_segment(name)}/links"
        return self.paginate(of_projects.ProjectLinkPage, path, {})

    async def link_projects(
        self, name: str, linked: str, *, discoverable: bool = False
    ) -> of_projects.ProjectLinkBody:
        """Links two projects: recall in one also searches the other.

        `discoverable`: who reads only one of them is told the name of the other, and how much it
        knows.
        """
        path = f"/v1/projects/{quote_segment(name)}/links/{quote_segment(linked)}"
        body = {"discoverable": discoverable}
        return await self.request(of_projects.ProjectLinkBody, "PUT", path, body=body)

    async def unlink_projects(self, name: str, linked: str) -> of_projects.UnlinkProjectsResponse:
        """Ends the link of two projects."""
        path = f"/v1/projects/{quote_segment(name)}/links/{quote_segment(linked)}"
        return await self.request(of_projects.UnlinkProjectsResponse, "DELETE", path)

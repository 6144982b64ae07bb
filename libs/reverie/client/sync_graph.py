"""Generated from `graph.py`: the same calls for synchronous code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from reverie.client.sync_base import SyncClientBase

if TYPE_CHECKING:
    from reverie.contracts import graph as of_graph
Id = UUID | str


class SyncGraphCalls(SyncClientBase):
    """Calls about the graph."""

    def link(
        self,
        source: Id,
        target: Id,
        type: str,
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> of_graph.CreateLinkResponse:
        """An edge from one memory to another; `weight` 0 to 1. Refused where it closes a circle."""
        return self._portal.run(
            self._reverie.link(source, target, type, weight=weight, metadata=metadata)
        )

    def unlink(self, id: Id) -> of_graph.DeleteLinkResponse:
        """Closes an edge, by its own id."""
        return self._portal.run(self._reverie.unlink(id))

    def get_subgraph(
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
        return self._portal.run(
            self._reverie.get_subgraph(
                id, depth=depth, fan_out=fan_out, limit=limit, as_of=as_of, include=include
            )
        )

    def list_impact(
        self,
        path: str | None = None,
        *,
        entity: str | None = None,
        project: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> of_graph.ImpactPage:
        """Which memories a change of a file, or of an entity, would make doubtful.

        At most 200 at once; `cursor`: the `next` of the answer that came before.
        """
        return self._portal.run(
            self._reverie.list_impact(
                path, entity=entity, project=project, limit=limit, cursor=cursor
            )
        )

    def get_graph_stats(
        self, *, project: str | None = None, scope: str | None = None
    ) -> of_graph.GraphStats:
        """The graph in numbers, as far as the key may read."""
        return self._portal.run(self._reverie.get_graph_stats(project=project, scope=scope))

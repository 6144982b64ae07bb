"""Routes for the versions and the provenance of a memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.memories.edits import (
    MemoryHistoryPage,
    MemoryProvenanceResponse,
    MemoryVersionBody,
    ReplacedMemoryBody,
    SourceSessionBody,
    SourceTurnBody,
)
from reverie.contracts.memories.system_metadata import parse_promotion
from reverie.domain.text.index_terms import get_request
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import CursorPosition, PageQuery, cut_page, decode_cursor
from reverie.runtime.http.routes import RouteTable
from reverie.store.memories.edits import NEWEST_VERSION
from reverie_services.recall.dependencies import MemoryDependencies


class MemoryVersionCursor(CursorPosition):
    """A cursor of a list in the order of versions."""

    version: Annotated[int, Field(ge=1, le=NEWEST_VERSION)]


routes = RouteTable[MemoryDependencies]()


@routes.add("GET /v1/memories/{id}/history")
async def list_versions(deps: MemoryDependencies, call: Call[None, PageQuery]) -> MemoryHistoryPage:
    """List the versions of a memory with actor, time and reason."""
    principal, query = call.principal, call.query
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    await deps.memories.get(principal, memory_id)
    before = decode_cursor(query.cursor, MemoryVersionCursor)
    rows = await deps.edits.history(
        principal, memory_id, before.version if before else NEWEST_VERSION, query.limit + 1
    )
    items, next_cursor = cut_page(
        rows, query.limit, lambda version: MemoryVersionCursor(version=version.version)
    )
    return MemoryHistoryPage(
        items=[MemoryVersionBody(**vars(version)) for version in items], next=next_cursor
    )


@routes.add("GET /v1/memories/{id}/provenance")
async def get_provenance(
    deps: MemoryDependencies, call: Call[None, None]
) -> MemoryProvenanceResponse:
    """Get the origin of a memory: session, turns, agent, predecessor."""
    principal = call.principal
    memory = await deps.memories.get(
        principal, await deps.memories.resolve(principal, call.path["id"])
    )
    origin = await deps.history.load_origin(principal, memory.id)
    session = origin.session
    promotion = parse_promotion(memory.metadata.get("promoted"))
    return MemoryProvenanceResponse(
        id=memory.id,
        source=memory.source,
        agent=memory.agent,
        asked=get_request(memory.metadata),
        git=memory.git,
        promoted=promotion.model_dump(mode="json") if promotion else None,
        session=None
        if session is None
        else SourceSessionBody(**vars(session), started_at=session.started, ended_at=session.ended),
        turns=[SourceTurnBody(**vars(turn)) for turn in origin.turns],
        replaced=[
            ReplacedMemoryBody(**vars(predecessor), created_at=predecessor.created)
            for predecessor in origin.replaced
        ],
    )

"""What recall answers of a memory's own past: its versions, and where it came from."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.edits import (
    History,
    Origin,
    Replaced,
    SourceSession,
    SourceTurn,
    VersionBody,
)
from reverie.recall.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import PageQuery, Position, cut_page, decode_cursor
from reverie.runtime.routes import Route
from reverie.store.edits import NEWEST, Version


class ByVersion(Position):
    """A cursor of a list in the order of versions."""

    version: Annotated[int, Field(ge=1, le=NEWEST)]


def routes(parts: Parts) -> list[Route]:
    """The table of a memory's past."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/memories/{id}/history", doors.history, query=PageQuery, answer=History,
              summary="The versions of a memory: what it was, who changed it, when and why"),
        Route("GET", "/v1/memories/{id}/provenance", doors.provenance, answer=Origin,
              summary="Where a memory came from: session, turns, agent, what it replaced"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def history(self, call: Call[None, PageQuery]) -> History:
        """`GET /v1/memories/{id}/history`."""
        who, query = call.principal, call.query
        memory = await self._parts.memories.resolve(who, call.path["id"])
        await self._parts.memories.get(who, memory)
        below = decode_cursor(query.cursor, ByVersion)
        found = await self._parts.edits.history(
            who, memory, below.version if below else NEWEST, query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda one: ByVersion(version=one.version))
        return History(items=[_version(one) for one in items], next=following)

    async def provenance(self, call: Call[None, None]) -> Origin:
        """`GET /v1/memories/{id}/provenance`."""
        who = call.principal
        memory = await self._parts.memories.get(
            who, await self._parts.memories.resolve(who, call.path["id"])
        )
        origin = await self._parts.past.origin(who, memory.id)
        found = origin.session
        return Origin(
            id=memory.id,
            source=memory.source,
            agent=memory.agent,
            git=memory.git,
            promoted=memory.metadata.get("promoted"),
            session=None
            if found is None
            else SourceSession(
                id=found.id,
                agent=found.agent,
                external_id=found.external_id,
                project=found.project,
                branch=found.branch,
                started_at=found.started,
                ended_at=found.ended,
            ),
            turns=[SourceTurn(**vars(turn)) for turn in origin.turns],
            replaced=[
                Replaced(
                    id=one.id,
                    version=one.version,
                    content=one.content,
                    agent=one.agent,
                    created_at=one.created,
                    step=one.step,
                )
                for one in origin.replaced
            ],
        )


def _version(one: Version) -> VersionBody:
    return VersionBody(**vars(one))

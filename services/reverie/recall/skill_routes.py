"""Skills over HTTP: a procedure answered as text that is ready to follow."""

from __future__ import annotations

from pydantic import ConfigDict

from reverie.contracts.skills import Replayed, SkillBody, SkillPage
from reverie.domain.errors import Invalid
from reverie.domain.ids import short_id
from reverie.domain.kinds import Kind
from reverie.domain.memory import Memory, Status
from reverie.domain.skills import places, procedure, replay
from reverie.recall.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, ScopedQuery, cut_page
from reverie.runtime.routes import Route
from reverie.store.memories import ListFilter


class ReplayQuery(Query):
    """One parameter for each place in braces."""

    model_config = ConfigDict(extra="allow", frozen=True)


def routes(parts: Parts) -> list[Route]:
    """The table of skills."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/skills", doors.skills, query=ScopedQuery, answer=SkillPage,
              summary="List skills with the places that a replay fills, newest first"),
        Route("GET", "/v1/skills/{id}/replay", doors.replay, query=ReplayQuery, answer=Replayed,
              summary="The steps of a skill as numbered text, its places filled"),
        Route("GET", "/v1/memories/{id}/replay", doors.replay, query=ReplayQuery, answer=Replayed,
              summary="The same, by the memory's id"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def skills(self, call: Call[None, ScopedQuery]) -> SkillPage:
        """`GET /v1/skills`."""
        who, query = call.principal, call.query
        only = ListFilter(
            scope=query.readable(who), kinds=[Kind.SKILL.value], status=[Status.ACTIVE.value]
        )
        found = await self._parts.memories.page(who, query.below(), query.limit + 1, only)
        items, following = cut_page(found, query.limit, lambda memory: ById(id=memory.id))
        return SkillPage(items=[_body(one) for one in items], next=following)

    async def replay(self, call: Call[None, ReplayQuery]) -> Replayed:
        """`GET /v1/skills/{id}/replay`."""
        who, memories = call.principal, self._parts.memories
        memory = await memories.get(who, await memories.resolve(who, call.path["id"]))
        if memory.kind is not Kind.SKILL:
            raise Invalid("id", f"this memory is of kind {memory.kind.value}, not a skill")
        title, steps = procedure(memory.content, memory.metadata)
        values = {name: str(value) for name, value in (call.query.model_extra or {}).items()}
        for name in values.keys() - set(places([title, *steps])):
            raise Invalid(name[:100], "the skill has no such place in braces")
        filled = replay(title, steps, values)
        return Replayed(
            id=memory.id,
            version=memory.version,
            title=filled.title,
            steps=list(filled.steps),
            text=filled.text,
            missing=list(filled.missing),
        )


def _body(memory: Memory) -> SkillBody:
    title, steps = procedure(memory.content, memory.metadata)
    return SkillBody(
        id=memory.id,
        short_id=short_id(memory.id),
        scope=memory.scope,
        key=memory.key,
        title=title,
        steps=len(steps),
        places=list(places([title, *steps])),
        tags=list(memory.tags),
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )

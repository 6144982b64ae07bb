"""Skills over HTTP: a procedure answered as text that is ready to follow."""

from __future__ import annotations

from pydantic import ConfigDict

from reverie.contracts.skills import Replayed
from reverie.domain.errors import Invalid
from reverie.domain.kinds import Kind
from reverie.domain.skills import places, procedure, replay
from reverie.recall.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route


class ReplayQuery(Query):
    """One parameter for each place in braces."""

    model_config = ConfigDict(extra="allow", frozen=True)


def routes(parts: Parts) -> list[Route]:
    """The table of skills."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/skills/{id}/replay", doors.replay, query=ReplayQuery, answer=Replayed,
              summary="The steps of a skill as numbered text, its places filled"),
        Route("GET", "/v1/memories/{id}/replay", doors.replay, query=ReplayQuery, answer=Replayed,
              summary="The same, by the memory's id"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

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

"""Routes that list skills and replay one as numbered steps."""

from __future__ import annotations

from pydantic import ConfigDict

from reverie.contracts.memories.typed_memories import SkillBody, SkillPage, SkillReplayResponse
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.ids import short_id
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.formats.procedures import fill_procedure, find_placeholders, parse_procedure
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, ScopedQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams
from reverie.store.memories.memories import ListFilter
from reverie_services.recall.dependencies import MemoryDependencies


class ReplayQuery(QueryParams):
    """One parameter for each place in braces."""

    model_config = ConfigDict(extra="allow", frozen=True)


routes = RouteTable[MemoryDependencies]()


@routes.add("GET /v1/skills")
async def list_skills(deps: MemoryDependencies, call: Call[None, ScopedQuery]) -> SkillPage:
    """List skills with their placeholders, newest first."""
    principal, query = call.principal, call.query
    list_filter = ListFilter(
        scope=query.readable_scope(principal),
        kinds=[Kind.SKILL.value],
        status=[MemoryStatus.ACTIVE.value],
    )
    rows = await deps.memories.page(principal, query.before_id(), query.limit + 1, list_filter)
    items, next_cursor = cut_page(rows, query.limit, lambda memory: IdCursor(id=memory.id))
    return SkillPage(items=[_build_skill_body(item) for item in items], next=next_cursor)


@routes.add("GET /v1/skills/{id}/replay")
@routes.add(
    "GET /v1/memories/{id}/replay", summary="Get the steps of a skill, by the id of its memory"
)
async def replay_skill(
    deps: MemoryDependencies, call: Call[None, ReplayQuery]
) -> SkillReplayResponse:
    """Get the steps of a skill with placeholders filled in."""
    principal, memories = call.principal, deps.memories
    memory = await memories.get(principal, await memories.resolve(principal, call.path["id"]))
    if memory.kind is not Kind.SKILL:
        raise InvalidInput("id", f"this memory is of kind {memory.kind.value}, not a skill")
    title, steps = parse_procedure(memory.content, memory.metadata)
    values = {name: str(value) for name, value in (call.query.model_extra or {}).items()}
    for name in values.keys() - set(find_placeholders([title, *steps])):
        raise InvalidInput(name[:100], "the skill has no such place in braces")
    filled = fill_procedure(title, steps, values)
    return SkillReplayResponse(
        id=memory.id,
        version=memory.version,
        title=filled.title,
        steps=list(filled.steps),
        text=filled.text,
        missing=list(filled.missing),
    )


def _build_skill_body(memory: Memory) -> SkillBody:
    title, steps = parse_procedure(memory.content, memory.metadata)
    return SkillBody(
        id=memory.id,
        short_id=short_id(memory.id),
        scope=memory.scope,
        key=memory.key,
        title=title,
        steps=len(steps),
        placeholders=list(find_placeholders([title, *steps])),
        tags=list(memory.tags),
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )

"""Tasks over HTTP: claimed by one agent at a time, moved, listed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.contracts.memories import TaskState
from reverie.contracts.tasks import ClaimTask, MoveTask, ReleaseTask, TaskBody, TaskMoved, TaskPage
from reverie.contracts.views import memory_body
from reverie.domain.access import Principal
from reverie.domain.confidence import HalfLives
from reverie.domain.errors import Invalid, NotFound
from reverie.domain.memory import Memory
from reverie.domain.redaction import redact
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, ScopedQuery, cut_page
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.tasks import Move, Standing


class TaskQuery(ScopedQuery):
    """Filters of `GET /v1/tasks`."""

    state: list[Literal["todo", "doing", "blocked", "done"]] | None = None
    claimable: bool | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of tasks."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/tasks", doors.tasks, query=TaskQuery, answer=TaskPage,
              summary="List tasks, newest first"),
        Route("PATCH", "/v1/tasks/{id}", doors.move, MoveTask, answer=TaskMoved,
              summary="Set the state of a task"),
        Route("POST", "/v1/tasks/{id}/claim", doors.claim, ClaimTask, answer=TaskMoved,
              summary="Take a task for a time; again by the same agent prolongs it"),
        Route("POST", "/v1/tasks/{id}/release", doors.release, ReleaseTask, answer=TaskMoved,
              summary="Give a task back"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def tasks(self, call: Call[None, TaskQuery]) -> TaskPage:
        """`GET /v1/tasks`."""
        who, query = call.principal, call.query
        found = await self._parts.tasks.page(
            who, query.below(), query.limit + 1, query.readable(who), query.state, query.claimable
        )
        items, following = cut_page(found, query.limit, lambda one: ById(id=one[0].id))
        lives = self._parts.settings.half_lives
        return TaskPage(items=[_body(*one, lives) for one in items], next=following)

    async def move(self, call: Call[MoveTask, None]) -> TaskMoved:
        """`PATCH /v1/tasks/{id}`."""
        agent = _agent(call.principal, call.body.agent)
        return await self._moved(call, Move(agent, state=call.body.state))

    async def claim(self, call: Call[ClaimTask, None]) -> TaskMoved:
        """`POST /v1/tasks/{id}/claim`."""
        agent = _agent(call.principal, call.body.agent)
        return await self._moved(call, Move(agent, seconds=call.body.seconds))

    async def release(self, call: Call[ReleaseTask, None]) -> TaskMoved:
        """`POST /v1/tasks/{id}/release`."""
        return await self._moved(call, Move(_agent(call.principal, call.body.agent)))

    async def _moved(self, call: Call[Any, None], move: Move) -> TaskMoved:
        who, parts = call.principal, self._parts
        memory = await parts.memories.resolve(who, call.path["id"])
        moved = await parts.tasks.move(who, memory, move, inject_headers())
        if moved.events:
            call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, moved.events))
        return await self._told(who, memory, moved.version)

    async def _told(self, who: Principal, memory: UUID, version: int) -> TaskMoved:
        standing = await self._parts.tasks.standing(who, memory)
        if standing is None:
            raise NotFound("task", str(memory))
        return TaskMoved(id=memory, version=version, task=_state(standing))


def _agent(who: Principal, named: str | None) -> str:
    """Who claims: the agent named, which a key of one agent must be or have as its sub-agent."""
    if named is None:
        return who.actor
    clean = redact(named).text
    if who.agent and clean != who.agent and not clean.startswith(f"{who.agent}/"):
        raise Invalid("agent", f"this key speaks for {who.agent} and its sub-agents")
    return clean


def _state(standing: Standing) -> TaskState:
    return TaskState.model_validate(asdict(standing))


def _body(memory: Memory, standing: Standing, lives: HalfLives) -> TaskBody:
    return TaskBody(**memory_body(memory, lives).model_dump(), task=_state(standing))

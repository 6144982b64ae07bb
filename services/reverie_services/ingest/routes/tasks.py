"""Routes that list, claim, update and release tasks."""

from __future__ import annotations

from typing import Any, Literal

from reverie.contracts.memories.memories import TaskStateBody, build_memory_body
from reverie.contracts.memories.typed_memories import (
    ClaimTaskRequest,
    MoveTaskRequest,
    ReleaseTaskRequest,
    TaskBody,
    TaskChangeResponse,
    TaskPage,
)
from reverie.domain.core.errors import InvalidInput, NotFound
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, ScopedQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.tasks import TaskChange
from reverie_services.ingest.dependencies import TaskDependencies


class TaskQuery(ScopedQuery):
    """Filters of `GET /v1/tasks`."""

    state: list[Literal["todo", "doing", "blocked", "done"]] | None = None
    claimable: bool | None = None


routes = RouteTable[TaskDependencies]()


@routes.add("GET /v1/tasks")
async def list_tasks(deps: TaskDependencies, call: Call[None, TaskQuery]) -> TaskPage:
    """List tasks, newest first."""
    principal, query = call.principal, call.query
    rows = await deps.tasks.page(
        principal,
        query.before_id(),
        query.limit + 1,
        query.readable_scope(principal),
        query.state,
        query.claimable,
    )
    items, next_cursor = cut_page(rows, query.limit, lambda item: IdCursor(id=item[0].id))
    bodies = [
        TaskBody(
            **build_memory_body(memory, deps.decay).model_dump(),
            task=TaskStateBody.model_validate(status, from_attributes=True),
        )
        for memory, status in items
    ]
    return TaskPage(items=bodies, next=next_cursor)


@routes.add("PATCH /v1/tasks/{id}")
async def update_task(
    deps: TaskDependencies, call: Call[MoveTaskRequest, None]
) -> TaskChangeResponse:
    """Change a task."""
    agent = _resolve_agent(call, call.body.agent)
    return await _apply_change(deps, call, TaskChange(agent, state=call.body.state))


@routes.add("POST /v1/tasks/{id}/claim")
async def claim_task(
    deps: TaskDependencies, call: Call[ClaimTaskRequest, None]
) -> TaskChangeResponse:
    """Claim a task for a time, or prolong the claim."""
    agent = _resolve_agent(call, call.body.agent)
    return await _apply_change(deps, call, TaskChange(agent, claim_seconds=call.body.seconds))


@routes.add("POST /v1/tasks/{id}/release")
async def release_task(
    deps: TaskDependencies, call: Call[ReleaseTaskRequest, None]
) -> TaskChangeResponse:
    """Release a task."""
    return await _apply_change(deps, call, TaskChange(_resolve_agent(call, call.body.agent)))


async def _apply_change(
    deps: TaskDependencies, call: Call[Any, None], change: TaskChange
) -> TaskChangeResponse:
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    changed = await deps.tasks.apply_change(principal, memory_id, change, trace_headers())
    deps.publisher.publish_after_reply(call, principal.tenant, changed.events)
    status = await deps.tasks.get_status(principal, memory_id)
    if status is None:
        raise NotFound("task", str(memory_id))
    task = TaskStateBody.model_validate(status, from_attributes=True)
    return TaskChangeResponse(id=memory_id, version=changed.version, task=task)


def _resolve_agent(call: Call[Any, None], requested: str | None) -> str:
    """Returns the agent that claims: the named one, if it is the key's agent or its sub-agent."""
    principal = call.principal
    if requested is None:
        return principal.actor
    redacted = call.redactor.redact(requested).text
    if (
        principal.agent
        and redacted != principal.agent
        and not redacted.startswith(f"{principal.agent}/")
    ):
        raise InvalidInput("agent", f"this key speaks for {principal.agent} and its sub-agents")
    return redacted

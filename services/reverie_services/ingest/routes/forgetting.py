"""Routes that archive, forget, restore and erase memories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.bus.erasure import erase_engine_events
from reverie.contracts.memories.edits import (
    MAX_FORGOTTEN,
    EraseMemoryRequest,
    EraseMemoryResponse,
    ForgetBatchRequest,
    ForgetBatchResponse,
    ForgetMemoryResponse,
    MemoryChangeResponse,
    RestoreMemoryResponse,
)
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import Conflict, InvalidInput
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.edits import MemoryChange
from reverie.store.memories.forgetting import ForgetFilter
from reverie_services.ingest.dependencies import EditDependencies
from reverie_services.ingest.write.memory_changes import (
    build_reply,
    change_as_read,
    change_memory,
)

_FORGOTTEN_FIELDS = {"status": MemoryStatus.DELETED.value}

routes = RouteTable[EditDependencies]()


@routes.add("POST /v1/memories/{id}/archive", response=MemoryChangeResponse, supports_etag=True)
async def archive_memory(deps: EditDependencies, call: Call[None, None]) -> Reply:
    """Archive a memory: it is found only when asked for."""

    async def archive(memory: Memory, expected_version: int) -> Reply:
        if memory.status not in {MemoryStatus.ACTIVE, MemoryStatus.ARCHIVED}:
            raise Conflict(f"the memory is {memory.status.value}, not active")
        fields = {"status": MemoryStatus.ARCHIVED.value}
        return build_reply(
            await change_memory(deps, call, fields, "archived", "archived", expected_version)
        )

    return await change_as_read(deps, call, archive)


@routes.add("DELETE /v1/memories/{id}", response=ForgetMemoryResponse, supports_etag=True)
async def forget_memory(deps: EditDependencies, call: Call[None, None]) -> Reply:
    """Forget a memory: no answer has it, and its text is erased unless it is restored in time."""
    return build_reply(await forget(deps, call, "forgotten"))


async def forget(
    deps: EditDependencies, call: Call[Any, None], reason: str
) -> ForgetMemoryResponse:
    """Forgets the memory of the path, at once and for good if nothing is kept to restore it."""
    changed = await change_memory(deps, call, _FORGOTTEN_FIELDS, reason, "forgotten")
    if not deps.forget_seconds:
        await _erase(deps, call, changed.id, None)
    return ForgetMemoryResponse(**changed.model_dump(), restorable_until=_restorable_until(deps))


@routes.add("POST /v1/memories/forget")
async def forget_batch(
    deps: EditDependencies, call: Call[ForgetBatchRequest, None]
) -> ForgetBatchResponse:
    """Forget the memories of ids or of a scope."""
    body, principal = call.body, call.principal
    if body.ids is None and body.scope is None:
        raise InvalidInput("ids", "give ids or a scope")
    scope = None if body.scope is None else parse_scope(body.scope)
    if scope is not None:
        principal.check_write(scope)
    ids = None
    if body.ids is not None:
        ids = [
            await deps.memories.find_id(principal, id, includes_forgotten=True) for id in body.ids
        ]
    chosen = ForgetFilter(ids, scope, body.keys, body.tag, body.status)
    done = await deps.forgetting.forget(principal, chosen, MAX_FORGOTTEN, trace_headers())
    deps.publisher.publish_after_reply(call, principal.tenant, done.events)
    if not deps.forget_seconds:
        for memory in done.ids:
            await _erase(deps, call, memory, None)
    return ForgetBatchResponse(
        forgotten=len(done.ids), more=done.more, restorable_until=_restorable_until(deps)
    )


def _restorable_until(deps: EditDependencies) -> datetime | None:
    """Until when what is forgotten now can be restored; None: its text is erased at once."""
    if not deps.forget_seconds:
        return None
    return datetime.now(UTC) + timedelta(seconds=deps.forget_seconds)


@routes.add("POST /v1/memories/{id}/restore", response=RestoreMemoryResponse)
async def restore_memory(deps: EditDependencies, call: Call[None, None]) -> Reply:
    """Restore a memory that was archived, or forgotten a short time ago."""
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"], includes_forgotten=True)
    restored = await deps.forgetting.restore(principal, memory_id, deps.forget_seconds)
    deps.publisher.publish_after_reply(call, principal.tenant, [restored.event])
    body = RestoreMemoryResponse(id=memory_id, version=restored.version, status=restored.status)
    return Reply(body=body, headers={"ETag": f'"{restored.version}"'})


@routes.add("POST /v1/memories/{id}/erase")
async def erase_memory(
    deps: EditDependencies, call: Call[EraseMemoryRequest, None]
) -> EraseMemoryResponse:
    """Erase a memory at once and for good, and say what was removed."""
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"], includes_forgotten=True)
    memory = await deps.forgetting.get(principal, memory_id)
    principal.check_admin(memory.scope)
    if memory.status is not MemoryStatus.DELETED:
        reason = call.redactor.within(memory.scope).redact(call.body.reason or "erased").text
        change = MemoryChange(_FORGOTTEN_FIELDS, reason, "forgotten")
        changed = await deps.edits.change(principal, memory_id, change, trace_headers())
        deps.publisher.publish_after_reply(call, principal.tenant, changed.events)
    return EraseMemoryResponse(
        id=memory_id,
        rows=await _erase(deps, call, memory_id, principal.writable_patterns),
        still_quoted_in=await deps.forgetting.list_quoting(principal, memory.content),
        in_backups_before=datetime.now(UTC),
    )


async def _erase(
    deps: EditDependencies, call: Call[Any, None], memory: UUID, grants: Sequence[str] | None
) -> dict[str, int]:
    """Erases a memory, also from what agents said; the number of rows by table."""
    rows = await deps.forgetting.erase(call.principal.tenant, memory, grants)
    await erase_engine_events(deps.publisher.bus, call.principal.tenant_name, rows)
    return rows

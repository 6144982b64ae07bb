"""Routes that list memories and read one, as it is now or as of a moment."""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2s
from uuid import UUID

from reverie.contracts.base import Name, Tag, Timestamp
from reverie.contracts.memories.memories import MemoryDetail, MemoryPage, build_memory_body
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import Kind, parse_kind
from reverie.domain.core.memory import MemoryStatus
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import IdCursor, ScopedQuery, cut_page
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import QueryParams
from reverie.store.memories.memories import VISIBLE_STATUSES, ListFilter
from reverie_services.recall.dependencies import MemoryDependencies
from reverie_services.recall.routes.response_bodies import build_memory_detail


class AsOfQuery(QueryParams):
    """A moment in the past: the answer is what was known then."""

    as_of: Timestamp | None = None


class MemoryListQuery(ScopedQuery):
    """Filters of `GET /v1/memories`; `valid_at`: true at that moment."""

    valid_at: Timestamp | None = None

    kind: list[Name] | None = None
    status: list[MemoryStatus] | None = None
    tag: Tag | None = None
    key: Name | None = None
    session: UUID | None = None


routes = RouteTable[MemoryDependencies]()


@routes.add("GET /v1/memories")
async def list_memories(deps: MemoryDependencies, call: Call[None, MemoryListQuery]) -> MemoryPage:
    """List memories, newest first."""
    principal, query = call.principal, call.query
    statuses = query.status or VISIBLE_STATUSES
    if MemoryStatus.DELETED in statuses:
        raise InvalidInput("status", "forgotten memories are not listed")
    list_filter = ListFilter(
        scope=query.readable_scope(principal),
        kinds=[parse_kind(kind).value for kind in query.kind] if query.kind else None,
        status=[str(status) for status in statuses],
        tag=query.tag,
        key=query.key,
        session=query.session,
        valid_at=query.valid_at,
    )
    rows = await deps.memories.page(principal, query.before_id(), query.limit + 1, list_filter)
    items, next_cursor = cut_page(rows, query.limit, lambda memory: IdCursor(id=memory.id))
    bodies = [build_memory_body(item, deps.decay) for item in items]
    return MemoryPage(items=bodies, next=next_cursor)


@routes.add("GET /v1/memories/{id}", response=MemoryDetail, supports_etag=True)
async def get_memory(deps: MemoryDependencies, call: Call[None, AsOfQuery]) -> Reply:
    """Get a memory with its neighbours.

    Its ETag is the version, and a hash of what changes without one: neighbours, staleness, a claim.
    """
    principal = call.principal
    if call.query.as_of:
        return await _get_memory_as_of(deps, principal, call.path["id"], call.query.as_of)
    requested_id = await deps.memories.find_id(principal, call.path["id"])
    memory, neighbours = await deps.memories.get_with_neighbours(principal, requested_id)
    task_status = None
    if memory.kind is Kind.TASK:
        task_status = await deps.tasks.get_status(principal, memory.id)
    body = build_memory_detail(memory, neighbours, deps.decay, task_status)
    shown = body.model_dump_json(exclude={"confidence", "accessed_at", "access_count"})
    digest = blake2s(shown.encode(), digest_size=4).hexdigest()
    headers = {"ETag": f'"{memory.version}-{digest}"'}
    if memory.id != requested_id:
        body.merged_from = requested_id
        headers["Content-Location"] = f"/v1/memories/{memory.id}"
    return Reply(body=body, headers=headers)


async def _get_memory_as_of(
    deps: MemoryDependencies, principal: Principal, id_text: str, at: datetime
) -> Reply:
    """A memory as it was known at `at`; it has no ETag, for the past cannot be edited."""
    requested_id = await deps.memories.find_id(principal, id_text, at)
    memory_id = await deps.memories.resolve(principal, str(requested_id), at)
    memory = await deps.history.get(principal, memory_id, at)
    neighbours = await deps.memories.load_neighbours(principal, memory.id, at)
    task_status = None
    if memory.kind is Kind.TASK:
        task_status = await deps.tasks.get_status(principal, memory.id, at)
    body = build_memory_detail(memory, neighbours, deps.decay, task_status, at)
    body.merged_from = requested_id if requested_id != memory.id else None
    return Reply(body=body)

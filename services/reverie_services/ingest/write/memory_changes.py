"""Applies a change to a memory as a request asks for it: its version, its events, its reply."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from reverie.contracts.memories.edits import MemoryChangeResponse
from reverie.domain.core.errors import InvalidInput, PreconditionFailed
from reverie.domain.core.memory import Memory
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.db.idempotency import build_busy_error
from reverie.store.memories.edits import MemoryChange
from reverie_services.ingest.dependencies import EditDependencies

_VERSION_TAG = re.compile(r'(?:W/)?"(\d{1,9})(?:-[0-9a-f]+)?"')

_ATTEMPTS = 8


async def change_as_read(
    deps: EditDependencies, call: Call[Any, None], change: Callable[[Memory, int], Awaitable[Reply]]
) -> Reply:
    """Makes a change that follows from the memory as it was read: it is read again where
    somebody changed it in between, so that nothing read before is written back.

    Raises `PreconditionFailed` where the caller named the version, `Unavailable` where others
    changed it at every attempt.
    """
    principal = call.principal
    expected_version = _parse_if_match(call.headers)
    for _ in range(_ATTEMPTS):
        memory_id = await deps.memories.resolve(principal, call.path["id"])
        memory = await deps.memories.get(principal, memory_id)
        try:
            return await change(memory, expected_version or memory.version)
        except PreconditionFailed:
            if expected_version is not None:
                raise
    raise build_busy_error("the memory")


async def change_memory(
    deps: EditDependencies,
    call: Call[Any, None],
    fields: Mapping[str, Any],
    reason: str,
    event: str,
    expected_version: int | None = None,
    confirms: bool = False,
) -> MemoryChangeResponse:
    """Changes the memory of the path, and publishes the events after the reply."""
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    expected_version = expected_version or _parse_if_match(call.headers)
    change = MemoryChange(fields, reason, event, expected_version, confirms)
    changed = await deps.edits.change(principal, memory_id, change, trace_headers())
    deps.publisher.publish_after_reply(call, principal.tenant, changed.events)
    return MemoryChangeResponse(id=memory_id, version=changed.version, changed=changed.changed)


def build_reply(body: MemoryChangeResponse) -> Reply:
    """The reply with the version of the memory as its ETag."""
    return Reply(body=body, headers={"ETag": f'"{body.version}"'})


def _parse_if_match(headers: Mapping[str, str]) -> int | None:
    """The version in If-Match; None without one or for `*`. Raises `InvalidInput`."""
    header = headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    match = _VERSION_TAG.fullmatch(header.strip())
    if match is None:
        raise InvalidInput("If-Match", 'is not an ETag of a memory, as "3"')
    return int(match[1])

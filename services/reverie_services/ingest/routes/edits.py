"""Routes that edit, judge, pin, roll back and confirm memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reverie.contracts.memories.edits import (
    ConfirmMemoryResponse,
    EditMemoryRequest,
    FeedbackRequest,
    MemoryChangeResponse,
    RollbackRequest,
)
from reverie.contracts.memories.system_metadata import replace_own_metadata
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import KIND_POLICIES, parse_kind
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.extraction.content_checks import suggest_improvements
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.index_terms import memory_index_text
from reverie.domain.text.memory_fence import strip_fenced
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.validation import check_size
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.memories.edits import build_content_fields, remove_record
from reverie_services.ingest.dependencies import EditDependencies
from reverie_services.ingest.routes.forgetting import forget
from reverie_services.ingest.write.memory_changes import build_reply, change_as_read, change_memory
from reverie_services.ingest.write.prepared_records import (
    ONLY_RECALLED_MESSAGE,
    check_validity,
    parse_writable_kind,
)

_RESTORED_FIELDS = ("kind", "tier", "key", "summary", "tags", "metadata", "valid_from", "valid_to")


routes = RouteTable[EditDependencies]()


@routes.add("PATCH /v1/memories/{id}", response=MemoryChangeResponse, supports_etag=True)
async def edit_memory(deps: EditDependencies, call: Call[EditMemoryRequest, None]) -> Reply:
    """Edit a memory; If-Match detects a concurrent edit."""
    return await _apply_edit(deps, call, call.body)


@routes.add("PUT /v1/memories/{id}/pin", response=MemoryChangeResponse, supports_etag=True)
async def pin_memory(deps: EditDependencies, call: Call[None, None]) -> Reply:
    """Pin a memory: always shown at session start, never decays."""
    return build_reply(await change_memory(deps, call, {"pinned": True}, "pinned", "pinned"))


@routes.add("DELETE /v1/memories/{id}/pin", response=MemoryChangeResponse, supports_etag=True)
async def unpin_memory(deps: EditDependencies, call: Call[None, None]) -> Reply:
    """Unpin a memory."""
    return build_reply(await change_memory(deps, call, {"pinned": False}, "unpinned", "unpinned"))


@routes.add("POST /v1/memories/{id}/feedback", response=MemoryChangeResponse, supports_etag=True)
async def give_feedback(deps: EditDependencies, call: Call[FeedbackRequest, None]) -> Reply:
    """Approve, edit or discard a memory."""
    body = call.body
    if (body.verdict == "edit") != (body.content is not None):
        raise InvalidInput("content", "goes with the verdict edit, and only with it")
    if body.verdict == "edit":
        return await _apply_edit(
            deps, call, EditMemoryRequest(content=body.content, reason=body.reason)
        )
    reason = call.redactor.redact(body.reason or body.verdict).text
    if body.verdict == "approve":
        fields = {"confidence": 1.0}
        return build_reply(
            await change_memory(deps, call, fields, reason, "approved", confirms=True)
        )
    return build_reply(await forget(deps, call, reason))


@routes.add("POST /v1/memories/{id}/rollback", response=MemoryChangeResponse, supports_etag=True)
async def roll_back_memory(deps: EditDependencies, call: Call[RollbackRequest, None]) -> Reply:
    """Restore an earlier version as a new version."""
    body = call.body

    async def roll_back(memory: Memory, expected_version: int) -> Reply:
        redactor = call.redactor.within(memory.scope)
        reason = redactor.redact(body.reason or f"rolled back to version {body.version}").text
        fields: dict[str, Any] = {}
        if body.version != memory.version:
            content, state = await deps.edits.version(call.principal, memory.id, body.version)
            fields = _build_restored_columns(memory, content, state)
        return build_reply(
            await change_memory(deps, call, fields, reason, "edited", expected_version)
        )

    return await change_as_read(deps, call, roll_back)


@routes.add("POST /v1/memories/{id}/confirm")
async def confirm_memory(deps: EditDependencies, call: Call[None, None]) -> ConfirmMemoryResponse:
    """Confirm that a stale memory is still true."""
    principal = call.principal
    memory_id = await deps.memories.resolve(principal, call.path["id"])
    version, cleared, events = await deps.stale_marks.confirm(principal, memory_id, trace_headers())
    deps.publisher.publish_after_reply(call, principal.tenant, events)
    return ConfirmMemoryResponse(id=memory_id, version=version, cleared=cleared)


async def _apply_edit(
    deps: EditDependencies, call: Call[Any, None], body: EditMemoryRequest
) -> Reply:

    async def edit(memory: Memory, expected_version: int) -> Reply:
        redacted, redactions = _redact_edit(deps, body, call.redactor.within(memory.scope))
        reason = redacted.reason or "edited"
        fields = _build_changed_columns(redacted, memory)
        validity = (
            getattr(redacted if name in redacted.model_fields_set else memory, name)
            for name in ("valid_from", "valid_to")
        )
        check_validity(*validity)
        kind = parse_kind(redacted.kind) if redacted.kind else memory.kind
        hints = suggest_improvements(redacted.content, kind) if redacted.content else ()
        is_new_text = redacted.content not in {None, memory.content}
        changed = await change_memory(
            deps, call, fields, reason, "edited", expected_version, is_new_text
        )
        notes = {"redactions": redactions, "hints": list(hints)}
        return build_reply(changed.model_copy(update=notes))

    return await change_as_read(deps, call, edit)


def _redact_edit(
    deps: EditDependencies, body: EditMemoryRequest, redactor: Redactor
) -> tuple[EditMemoryRequest, int]:
    """The edit without secrets and without recalled memory."""
    texts: dict[str, Any] = {
        "summary": strip_fenced(body.summary).strip() if body.summary else body.summary,
        "reason": body.reason,
        "tags": body.tags,
        "metadata": body.metadata,
    }
    if body.content is not None:
        check_size("content", body.content, deps.content_limit, "content_limit")
        texts["content"] = strip_fenced(body.content).strip()
        if not texts["content"]:
            raise InvalidInput("content", ONLY_RECALLED_MESSAGE)
    redacted = redactor.redact_value(texts)
    given_fields = {name: redacted.value[name] for name in texts if name in body.model_fields_set}
    return body.model_copy(update=given_fields), redacted.count


def _build_changed_columns(body: EditMemoryRequest, memory: Memory) -> dict[str, Any]:
    """The columns that an edit names; the words of the memory follow content and tags."""
    given_fields = body.model_fields_set - {"reason", "kind", "content"}
    fields: dict[str, Any] = {
        name: value
        for name, value in body.model_dump(include=given_fields, mode="json").items()
        if value is not None or name in {"valid_from", "valid_to", "summary"}
    }
    if fields.get("summary") == "":
        fields["summary"] = None
    if body.metadata is not None:
        fields["metadata"] = replace_own_metadata(memory.metadata, body.metadata)
    if body.tags is not None:
        fields["tags"] = list(dict.fromkeys(body.tags))
    if body.kind is not None:
        kind = parse_writable_kind(body.kind)
        fields["kind"] = kind.value
        if memory.metadata.get("tier_by") != "hand":
            fields.setdefault("tier", KIND_POLICIES[kind].tier.value)
    if body.tier is not None:
        fields["metadata"] = fields.get("metadata", memory.metadata) | {"tier_by": "hand"}
    tags, metadata = fields.get("tags", memory.tags), fields.get("metadata", memory.metadata)
    if body.content is not None:
        if "record" in metadata:
            metadata = fields["metadata"] = remove_record(metadata)
        fields |= build_content_fields(body.content, memory.key, tags, metadata)
    elif body.tags is not None:
        fields["index_text"] = memory_index_text(memory.key, memory.content, tags, metadata)
    return fields


def _build_restored_columns(
    memory: Memory, content: str, state: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns of an earlier version. What was superseded since stays true until then only."""
    fields = {name: state[name] for name in _RESTORED_FIELDS if name in state}
    if memory.status is MemoryStatus.SUPERSEDED and memory.valid_to and not fields.get("valid_to"):
        fields["valid_to"] = memory.valid_to.isoformat()
    return fields | build_content_fields(
        content, state.get("key"), state.get("tags") or (), state.get("metadata") or {}
    )

"""Routes that edit, forget, pin, roll back, confirm and restore memories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.bus.outbox_relay import publish_after_reply
from reverie.contracts.dreams import RestoreMemoryResponse
from reverie.contracts.edits import (
    ConfirmMemoryResponse,
    EditMemoryRequest,
    FeedbackRequest,
    MemoryChangeResponse,
    RollbackRequest,
)
from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import ANCHOR_KINDS, KIND_POLICIES, parse_kind
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.extraction.kind_classifier import suggest_improvements
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.memory_fence import strip_fenced
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import Route
from reverie.runtime.observability.tracing import inject_headers
from reverie.store.memories.edits import MemoryChange, build_content_fields
from reverie_services.ingest.dependencies import IngestDependencies
from reverie_services.ingest.write.preparation import check_size, check_validity

_VERSION_TAG = re.compile(r'(?:W/)?"(\d{1,9})"')
_RESTORED_FIELDS = ("kind", "tier", "key", "summary", "tags", "metadata", "valid_from", "valid_to")


def build_edit_routes(deps: IngestDependencies) -> list[Route]:
    """The table of changes."""
    handlers = EditHandlers(deps)
    return [
        Route(
            "PATCH",
            "/v1/memories/{id}",
            handlers.edit_memory,
            EditMemoryRequest,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary="Edit a memory; If-Match guards against another's edit",
        ),
        Route(
            "DELETE",
            "/v1/memories/{id}",
            handlers.forget_memory,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary="Forget a memory: it is never found again",
        ),
        Route(
            "POST",
            "/v1/memories/{id}/rollback",
            handlers.roll_back_memory,
            RollbackRequest,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary="Make a memory what an earlier version was",
        ),
        Route(
            "POST",
            "/v1/memories/{id}/feedback",
            handlers.give_feedback,
            FeedbackRequest,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary="Approve, edit or discard a memory",
        ),
        Route(
            "PUT",
            "/v1/memories/{id}/pin",
            handlers.pin_memory,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary=("Pin a memory: always shown at session start, never decays"),
        ),
        Route(
            "DELETE",
            "/v1/memories/{id}/pin",
            handlers.unpin_memory,
            response=MemoryChangeResponse,
            supports_etag=True,
            summary="Unpin a memory",
        ),
    ]


class EditHandlers:
    """The handlers, around the parts of the service."""

    def __init__(self, deps: IngestDependencies) -> None:
        self._deps = deps

    async def edit_memory(self, call: Call[EditMemoryRequest, None]) -> Reply:
        """`PATCH /v1/memories/{id}`."""
        return await self._apply_edit(call, call.body, "edited")

    async def forget_memory(self, call: Call[None, None]) -> Reply:
        """`DELETE /v1/memories/{id}`."""
        fields = {"status": MemoryStatus.DELETED.value}
        return await self._apply_change(call, fields, "forgotten", "forgotten")

    async def pin_memory(self, call: Call[None, None]) -> Reply:
        """`PUT /v1/memories/{id}/pin`."""
        return await self._apply_change(call, {"pinned": True}, "pinned", "pinned")

    async def unpin_memory(self, call: Call[None, None]) -> Reply:
        """`DELETE /v1/memories/{id}/pin`."""
        return await self._apply_change(call, {"pinned": False}, "unpinned", "unpinned")

    async def give_feedback(self, call: Call[FeedbackRequest, None]) -> Reply:
        """`POST /v1/memories/{id}/feedback`."""
        body = call.body
        if (body.verdict == "edit") != (body.content is not None):
            raise InvalidInput("content", "goes with the verdict edit, and only with it")
        if body.verdict == "edit":
            return await self._apply_edit(
                call, EditMemoryRequest(content=body.content, reason=body.reason), "edited"
            )
        reason = _redact_reason(body.reason, call.redactor) or body.verdict
        if body.verdict == "approve":
            return await self._apply_change(call, {"confidence": 1.0}, reason, "approved")
        return await self._apply_change(
            call, {"status": MemoryStatus.DELETED.value}, reason, "forgotten"
        )

    async def roll_back_memory(self, call: Call[RollbackRequest, None]) -> Reply:
        """`POST /v1/memories/{id}/rollback`."""
        principal, body = call.principal, call.body
        memory = await self._load_memory(call)
        if body.version == memory.version:
            return await self._apply_change(call, {}, "stays as it is", "edited")
        content, state = await self._deps.edits.version(principal, memory.id, body.version)
        fields = _build_restored_columns(memory, content, state)
        reason = (
            _redact_reason(body.reason, call.redactor) or f"rolled back to version {body.version}"
        )
        return await self._apply_change(call, fields, reason, "edited")

    async def _apply_edit(
        self, call: Call[Any, None], body: EditMemoryRequest, event: str
    ) -> Reply:
        memory = await self._load_memory(call)
        redacted, redactions = self._redact_edit(body, call.redactor)
        fields = _build_changed_columns(redacted, memory)
        check_validity(
            redacted.valid_from or memory.valid_from, redacted.valid_to or memory.valid_to
        )
        reason = redacted.reason or "edited"
        kind = parse_kind(redacted.kind) if redacted.kind else memory.kind
        notes = suggest_improvements(redacted.content, kind) if redacted.content else ()
        return await self._apply_change(call, fields, reason, event, redactions, notes)

    def _redact_edit(
        self, body: EditMemoryRequest, redactor: Redactor
    ) -> tuple[EditMemoryRequest, int]:
        """The edit without secrets and without recalled memory."""
        limit = self._deps.settings.content_limit
        texts: dict[str, Any] = {
            "summary": strip_fenced(body.summary).strip() if body.summary else body.summary,
            "reason": body.reason,
            "tags": body.tags,
            "metadata": body.metadata,
        }
        if body.content is not None:
            check_size("content", body.content, limit, "content_limit")
            texts["content"] = strip_fenced(body.content).strip()
            if not texts["content"]:
                raise InvalidInput(
                    "content", "is recalled memory and nothing else: it is known already"
                )
        redacted = redactor.redact_value(texts)
        given_fields = {
            name: redacted.value[name] for name in texts if name in body.model_fields_set
        }
        return body.model_copy(update=given_fields), redacted.count

    async def _load_memory(self, call: Call[Any, None]) -> Memory:
        return await self._deps.memories.get(call.principal, await self._resolve_id(call))

    async def _resolve_id(self, call: Call[Any, None]) -> UUID:
        return await self._deps.memories.resolve(call.principal, call.path["id"])

    async def _apply_change(
        self,
        call: Call[Any, None],
        fields: Mapping[str, Any],
        reason: str,
        event: str,
        redactions: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Reply:
        principal, deps = call.principal, self._deps
        memory_id = await self._resolve_id(call)
        change = MemoryChange(fields, reason, event, _parse_if_match(call.headers))
        changed = await deps.edits.change(principal, memory_id, change, inject_headers())
        events = changed.events
        if event == "approved" or "content" in fields:
            _, _, cleared = await deps.stale_marks.confirm(principal, memory_id, inject_headers())
            events = [*events, *cleared]
        publish_after_reply(call, deps, principal.tenant, events)
        return _build_reply(memory_id, changed.version, bool(changed.events), redactions, notes)


def _build_reply(
    memory_id: UUID,
    version: int,
    changed: bool,
    redactions: int = 0,
    notes: tuple[str, ...] = (),
) -> Reply:
    body = MemoryChangeResponse(
        id=memory_id, version=version, changed=changed, redactions=redactions, hints=list(notes)
    )
    return Reply(body=body, headers={"ETag": f'"{version}"'})


def _build_changed_columns(body: EditMemoryRequest, memory: Memory) -> dict[str, Any]:
    """The columns that an edit changes; its words follow content and tags."""
    given_fields = body.model_fields_set - {"reason", "kind", "content"}
    fields: dict[str, Any] = {
        name: value
        for name, value in body.model_dump(include=given_fields, mode="json").items()
        if value is not None or name in {"valid_from", "valid_to", "summary"}
    }
    if fields.get("summary") == "":
        fields["summary"] = None
    if body.tags is not None:
        fields["tags"] = list(dict.fromkeys(body.tags))
    if body.kind is not None:
        fields |= _build_kind_columns(body.kind)
    if body.content is not None or body.tags is not None:
        tags = fields.get("tags", memory.tags)
        fields |= build_content_fields(body.content or memory.content, memory.key, tags)
    return fields


def _build_restored_columns(
    memory: Memory, content: str, state: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns of an earlier version. What was superseded since stays true until then only."""
    fields = {name: state[name] for name in _RESTORED_FIELDS if name in state}
    if memory.status is MemoryStatus.SUPERSEDED and memory.valid_to and not fields.get("valid_to"):
        fields["valid_to"] = memory.valid_to.isoformat()
    return fields | build_content_fields(content, state.get("key"), state.get("tags") or ())


def _build_kind_columns(name: str) -> dict[str, str]:
    kind = parse_kind(name)
    if kind in ANCHOR_KINDS:
        raise InvalidInput("kind", f"{kind.value} nodes are made from what memories touch")
    return {"kind": kind.value, "tier": KIND_POLICIES[kind].tier.value}


def _redact_reason(reason: str | None, redactor: Redactor) -> str | None:
    return redactor.redact(reason).text if reason else None


def _parse_if_match(headers: Mapping[str, str]) -> int | None:
    """The version in If-Match; None without one or for `*`. Raises `InvalidInput`."""
    header = headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    match = _VERSION_TAG.fullmatch(header.strip())
    if match is None:
        raise InvalidInput("If-Match", 'is not an ETag of a memory, as "3"')
    return int(match[1])


def build_restore_routes(deps: IngestDependencies) -> list[Route]:
    """The table of both."""

    async def restore(call: Call[None, None]) -> Reply:
        principal = call.principal
        memory_id = await deps.memories.resolve(principal, call.path["id"])
        version, event = await deps.maintenance.restore(principal, memory_id)
        publish_after_reply(call, deps, principal.tenant, [event])
        body = RestoreMemoryResponse(id=memory_id, version=version)
        return Reply(body=body, headers={"ETag": f'"{version}"'})

    async def confirm(call: Call[None, None]) -> ConfirmMemoryResponse:
        principal = call.principal
        memory_id = await deps.memories.resolve(principal, call.path["id"])
        version, cleared, events = await deps.stale_marks.confirm(
            principal, memory_id, inject_headers()
        )
        publish_after_reply(call, deps, principal.tenant, events)
        return ConfirmMemoryResponse(id=memory_id, version=version, cleared=cleared)

    return [
        Route(
            "POST",
            "/v1/memories/{id}/confirm",
            confirm,
            response=ConfirmMemoryResponse,
            summary="Say that a memory holds as the code stands",
        ),
        Route(
            "POST",
            "/v1/memories/{id}/restore",
            restore,
            response=RestoreMemoryResponse,
            summary="Take a memory out of the archive",
        ),
    ]

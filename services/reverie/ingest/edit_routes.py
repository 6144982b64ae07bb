"""What ingest takes over HTTP of memories that stand: edits, judgements, forgetting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.contracts.edits import Edited, EditMemory, Feedback, RollBack
from reverie.domain.classify import hints
from reverie.domain.errors import Invalid
from reverie.domain.fence import strip
from reverie.domain.kinds import ANCHORS, TREATMENT, parse_kind
from reverie.domain.memory import Memory, Status
from reverie.domain.redaction import redact, redact_value
from reverie.ingest.accept import check_size, check_validity
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call, Reply
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.edits import Change, worded

_VERSION_TAG = re.compile(r'(?:W/)?"(\d{1,9})"')
_RESTORED = ("kind", "tier", "key", "summary", "tags", "metadata", "valid_from", "valid_to")


def routes(parts: Parts) -> list[Route]:
    """The table of changes."""
    doors = Doors(parts)
    return [
        Route("PATCH", "/v1/memories/{id}", doors.edit, EditMemory, answer=Edited,
              tagged=True, summary="Edit a memory; If-Match guards against another's edit"),
        Route("DELETE", "/v1/memories/{id}", doors.forget, answer=Edited,
              tagged=True, summary="Forget a memory: it is never found again"),
        Route("POST", "/v1/memories/{id}/rollback", doors.roll_back, RollBack, answer=Edited,
              tagged=True, summary="Make a memory what an earlier version was"),
        Route("POST", "/v1/memories/{id}/feedback", doors.feedback, Feedback, answer=Edited,
              tagged=True, summary="Approve, edit or discard a memory"),
        Route("PUT", "/v1/memories/{id}/pin", doors.pin, answer=Edited,
              tagged=True, summary="Pin a memory: always shown at session start, never decays"),
        Route("DELETE", "/v1/memories/{id}/pin", doors.unpin, answer=Edited,
              tagged=True, summary="Unpin a memory"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def edit(self, call: Call[EditMemory, None]) -> Reply:
        """`PATCH /v1/memories/{id}`."""
        return await self._edit(call, call.body, "edited")

    async def forget(self, call: Call[None, None]) -> Reply:
        """`DELETE /v1/memories/{id}`."""
        fields = {"status": Status.DELETED.value}
        return await self._change(call, fields, "forgotten", "forgotten")

    async def pin(self, call: Call[None, None]) -> Reply:
        """`PUT /v1/memories/{id}/pin`."""
        return await self._change(call, {"pinned": True}, "pinned", "pinned")

    async def unpin(self, call: Call[None, None]) -> Reply:
        """`DELETE /v1/memories/{id}/pin`."""
        return await self._change(call, {"pinned": False}, "unpinned", "unpinned")

    async def feedback(self, call: Call[Feedback, None]) -> Reply:
        """`POST /v1/memories/{id}/feedback`."""
        body = call.body
        if (body.verdict == "edit") != (body.content is not None):
            raise Invalid("content", "goes with the verdict edit, and only with it")
        if body.verdict == "edit":
            return await self._edit(
                call, EditMemory(content=body.content, reason=body.reason), "edited"
            )
        reason = _clean(body.reason) or body.verdict
        if body.verdict == "approve":
            return await self._change(call, {"confidence": 1.0}, reason, "approved")
        return await self._change(call, {"status": Status.DELETED.value}, reason, "forgotten")

    async def roll_back(self, call: Call[RollBack, None]) -> Reply:
        """`POST /v1/memories/{id}/rollback`."""
        who, body = call.principal, call.body
        memory = await self._memory(call)
        if body.version == memory.version:
            return await self._change(call, {}, "stays as it is", "edited")
        content, state = await self._parts.edits.version(who, memory.id, body.version)
        fields = _restored(memory, content, state)
        reason = _clean(body.reason) or f"rolled back to version {body.version}"
        return await self._change(call, fields, reason, "edited")

    async def _edit(self, call: Call[Any, None], body: EditMemory, event: str) -> Reply:
        memory = await self._memory(call)
        clean, redactions = self._redacted(body)
        fields = _fields(clean, memory)
        check_validity(clean.valid_from or memory.valid_from, clean.valid_to or memory.valid_to)
        reason = clean.reason or "edited"
        kind = parse_kind(clean.kind) if clean.kind else memory.kind
        notes = hints(clean.content, kind) if clean.content else ()
        return await self._change(call, fields, reason, event, redactions, notes)

    def _redacted(self, body: EditMemory) -> tuple[EditMemory, int]:
        """The edit without secrets and without recalled memory."""
        limit = self._parts.settings.content_limit
        texts: dict[str, Any] = {
            "summary": strip(body.summary).strip() if body.summary else body.summary,
            "reason": body.reason,
            "tags": body.tags,
            "metadata": body.metadata,
        }
        if body.content is not None:
            check_size("content", body.content, limit, "content_limit")
            texts["content"] = strip(body.content).strip()
            if not texts["content"]:
                raise Invalid("content", "is recalled memory and nothing else: it is known already")
        clean = redact_value(texts)
        given = {name: clean.value[name] for name in texts if name in body.model_fields_set}
        return body.model_copy(update=given), clean.count

    async def _memory(self, call: Call[Any, None]) -> Memory:
        return await self._parts.memories.get(call.principal, await self._id(call))

    async def _id(self, call: Call[Any, None]) -> UUID:
        return await self._parts.memories.resolve(call.principal, call.path["id"])

    async def _change(
        self,
        call: Call[Any, None],
        fields: Mapping[str, Any],
        why: str,
        event: str,
        redactions: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Reply:
        who, parts = call.principal, self._parts
        memory = await self._id(call)
        change = Change(fields, why, event, _expected(call.headers))
        changed = await parts.edits.change(who, memory, change, inject_headers())
        told = changed.events
        if event == "approved" or "content" in fields:
            _, _, cleared = await parts.doubts.confirm(who, memory, inject_headers())
            told = [*told, *cleared]
        if told:
            call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, told))
        return _reply(memory, changed.version, bool(changed.events), redactions, notes)


def _reply(
    memory: UUID,
    version: int,
    changed: bool,
    redactions: int = 0,
    notes: tuple[str, ...] = (),
) -> Reply:
    body = Edited(
        id=memory, version=version, changed=changed, redactions=redactions, hints=list(notes)
    )
    return Reply(body=body, headers={"ETag": f'"{version}"'})


def _fields(body: EditMemory, memory: Memory) -> dict[str, Any]:
    """The columns that an edit changes; its words follow content and tags."""
    given = body.model_fields_set - {"reason", "kind", "content"}
    fields: dict[str, Any] = {
        name: value
        for name, value in body.model_dump(include=given, mode="json").items()
        if value is not None or name in {"valid_from", "valid_to", "summary"}
    }
    if fields.get("summary") == "":
        fields["summary"] = None
    if body.tags is not None:
        fields["tags"] = list(dict.fromkeys(body.tags))
    if body.kind is not None:
        fields |= _kind(body.kind)
    if body.content is not None or body.tags is not None:
        tags = fields.get("tags", memory.tags)
        fields |= worded(body.content or memory.content, memory.key, tags)
    return fields


def _restored(memory: Memory, content: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an earlier version. What was superseded since stays true until then only."""
    fields = {name: state[name] for name in _RESTORED if name in state}
    if memory.status is Status.SUPERSEDED and memory.valid_to and not fields.get("valid_to"):
        fields["valid_to"] = memory.valid_to.isoformat()
    return fields | worded(content, state.get("key"), state.get("tags") or ())


def _kind(name: str) -> dict[str, str]:
    kind = parse_kind(name)
    if kind in ANCHORS:
        raise Invalid("kind", f"{kind.value} nodes are made from what memories touch")
    return {"kind": kind.value, "tier": TREATMENT[kind].tier.value}


def _clean(reason: str | None) -> str | None:
    return redact(reason).text if reason else None


def _expected(headers: Mapping[str, str]) -> int | None:
    """The version in If-Match; None without one or for `*`. Raises `Invalid`."""
    given = headers.get("If-Match")
    if given is None or given.strip() == "*":
        return None
    match = _VERSION_TAG.fullmatch(given.strip())
    if match is None:
        raise Invalid("If-Match", 'is not an ETag of a memory, as "3"')
    return int(match[1])

"""Routes that stream or list memory events; resumable and filtered by access."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from reverie.bus.interface import StoredMessage
from reverie.contracts.base import Name, NonBlankStr
from reverie.contracts.events import (
    MEMORY_EVENTS,
    MEMORY_STREAM,
    EventPage,
    MemoryEventBody,
    memory_subject,
)
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import parse_scope
from reverie.domain.core.errors import InvalidInput, Unavailable
from reverie.domain.core.kinds import parse_kind
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.streaming import StreamingReply, iterate_with_ticks
from reverie.runtime.http.validation import QueryParams
from reverie.store.platform.event_visibility import (
    MAX_CURSOR_LENGTH,
    CursorCipher,
    VisibleMemory,
    has_token_expired,
)
from reverie_services.ingest.dependencies import EventDependencies

HEARTBEAT_SECONDS = 15.0
"""So often a silent stream is shown to be alive, and its key looked up again."""
KEY_SHARE, TENANT_SHARE = 0.25, 0.75
"""The part of all watchers that may be of one key, and of one tenant."""
EVENT_CURSOR_PURPOSE = "a place among events"
SSE_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-store",
}
_SSE_EXAMPLE = (
    "id: p1.3f9c\nevent: remembered\n"
    'data: {"event": "remembered", "scope": "project/shop", "kind": "decision"}\n\n'
)
_BATCH_SIZE = 100
_MAX_BATCHES = 10
"""A page looks at so many messages at a time, and so many times at most."""
_EDGE_FIELDS = ("from", "to")
_OTHER_MEMORY_FIELDS = ("merged", "by", "into")


class EventQuery(QueryParams):
    """The filter of events: scopes (and below), kinds and names; `after` replaces Last-Event-ID."""

    scope: list[NonBlankStr] | None = None
    kind: list[Name] | None = None
    event: list[Name] | None = None
    after: Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_LENGTH)] | None = None


class EventPageQuery(EventQuery):
    """The same; how many at most."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50


@dataclass(frozen=True)
class EventFilter:
    """The filter of a watcher; None matches all."""

    scopes: list[str] | None
    kinds: set[str] | None
    events: set[str] | None

    def matches_memory(self, memory: VisibleMemory) -> bool:
        """Returns whether the memory has a requested scope and kind."""
        return self._covers_scope(memory.scope) and (
            self.kinds is None or memory.kind in self.kinds
        )

    def matches_dream(self, principal: Principal, scope: str) -> bool:
        """Returns whether events of a dream over the scope are visible and requested; dreams have
        no kind.
        """
        return self.kinds is None and self._covers_scope(scope) and principal.may_read(scope)

    def _covers_scope(self, scope: str) -> bool:
        return self.scopes is None or any(
            scope == selected or scope.startswith(f"{selected}/") for selected in self.scopes
        )


routes: RouteTable[EventHandlers] = RouteTable()


class EventHandlers:
    """Handlers of the event stream, and the count of who watches it."""

    def __init__(self, deps: EventDependencies) -> None:
        self._deps = deps
        self._watchers_by_key: Counter[str] = Counter()
        self._watchers_by_tenant: Counter[int] = Counter()

    @routes.add(
        "GET /v1/events", streaming=True, response_examples={"text/event-stream": _SSE_EXAMPLE}
    )
    async def stream_events(self, call: Call[None, EventQuery]) -> StreamingReply:
        """Stream changes of memories as server-sent events."""
        principal, event_filter = call.principal, _build_event_filter(call.principal, call.query)
        cursor_cipher = await self._deps.event_visibility.load_cursor_cipher(principal)
        after = _decode_position(call, cursor_cipher)
        first, last = await self._deps.bus.sequence_range(MEMORY_STREAM)
        is_gap = after is not None and not first - 1 <= after <= last
        start = last if after is None else after
        if is_gap:
            start = first - 1
        return StreamingReply(
            self._iterate_events(principal, event_filter, cursor_cipher, start, is_gap),
            SSE_HEADERS,
            endless=True,
        )

    @routes.add("GET /v1/events/page")
    async def list_events(self, call: Call[None, EventPageQuery]) -> EventPage:
        """List changes of memories after a cursor.

        Without a cursor, none but the one to begin from.
        """
        principal, event_filter = call.principal, _build_event_filter(call.principal, call.query)
        cursor_cipher = await self._deps.event_visibility.load_cursor_cipher(principal)
        encode_cursor = partial(cursor_cipher.encrypt, EVENT_CURSOR_PURPOSE)
        after = _decode_position(call, cursor_cipher)
        first, last = await self._deps.bus.sequence_range(MEMORY_STREAM)
        if after is None:
            return EventPage(items=[], next=encode_cursor(last))
        gap = not first - 1 <= after <= last
        position = first - 1 if gap else after
        items: list[MemoryEventBody] = []
        subject = memory_subject(principal.tenant_name, ">")
        for _ in range(_MAX_BATCHES):
            batch = await self._deps.bus.read_page(MEMORY_STREAM, subject, position, _BATCH_SIZE)
            if not batch:
                next_cursor = encode_cursor(max(position, last))
                return EventPage(items=items, next=next_cursor, gap=gap, has_more=False)
            for message in batch:
                position = message.seq
                if event := await self._describe_event(principal, event_filter, message):
                    name, data = event
                    cursor = encode_cursor(position)
                    items.append(MemoryEventBody(event=name, cursor=cursor, data=data))
                    if len(items) == call.query.limit:
                        return EventPage(items=items, next=cursor, gap=gap, has_more=True)
        return EventPage(items=items, next=encode_cursor(position), gap=gap, has_more=True)

    async def _iterate_events(
        self,
        principal: Principal,
        event_filter: EventFilter,
        cursor_cipher: CursorCipher,
        position: int,
        is_gap: bool,
    ) -> AsyncGenerator[bytes, None]:
        self._check_places(principal)
        encode_cursor = partial(cursor_cipher.encrypt, EVENT_CURSOR_PURPOSE)
        subject = memory_subject(principal.tenant_name, ">")
        self._watchers_by_key[principal.key_id] += 1
        self._watchers_by_tenant[principal.tenant] += 1
        try:
            cursor = encode_cursor(position)
            yield _encode_event(cursor, "reset", {}) if is_gap else _encode_heartbeat(cursor)
            heartbeat_due = monotonic() + HEARTBEAT_SECONDS
            watched = self._deps.bus.watch(MEMORY_STREAM, subject, position)
            async with aclosing(iterate_with_ticks(watched, HEARTBEAT_SECONDS / 3)) as ticks:
                async for message in ticks:
                    if has_token_expired(principal):
                        return
                    if message:
                        position = message.seq
                        event = await self._describe_event(principal, event_filter, message)
                        if event:
                            yield _encode_event(encode_cursor(position), *event)
                    if monotonic() < heartbeat_due:
                        continue
                    if not await self._deps.event_visibility.is_key_valid(principal):
                        return
                    yield _encode_heartbeat(encode_cursor(position))
                    heartbeat_due = monotonic() + HEARTBEAT_SECONDS
        finally:
            self._watchers_by_key -= Counter([principal.key_id])
            self._watchers_by_tenant -= Counter([principal.tenant])

    def _check_places(self, principal: Principal) -> None:
        """Raises `Unavailable` if all watch that may: no key or tenant may hold all places."""
        limit = self._deps.max_watchers
        for holder, count, share in (
            ("", self._watchers_by_tenant.total(), 1.0),
            (" of this tenant", self._watchers_by_tenant[principal.tenant], TENANT_SHARE),
            (" of this key", self._watchers_by_key[principal.key_id], KEY_SHARE),
        ):
            places = max(1, int(limit * share))
            if count >= places:
                reason = f"{places} clients{holder} watch already (max_event_watchers: {limit})"
                raise Unavailable("a place to watch from", reason, 5.0)

    async def _describe_event(
        self, principal: Principal, event_filter: EventFilter, message: StoredMessage
    ) -> tuple[str, dict[str, Any]] | None:
        """Returns the name and public data of an event; None if hidden or not requested."""
        name = message.subject.rsplit(".", 1)[1]
        if event_filter.events is not None and name not in event_filter.events:
            return None
        body = json.loads(message.data)
        if "run" in body:
            if not event_filter.matches_dream(principal, body["scope"]):
                return None
            # Dream events contain numbers, and no content.
            fields = {key: value for key, value in body.items() if key not in ("v", "tenant")}
            return name, {"event": name} | fields
        subject_fields = [end for end in _EDGE_FIELDS if end in body] or ["id"]
        subject_ids = [UUID(body[field]) for field in subject_fields if field in body]
        if not subject_ids:
            return None
        other_ids = [UUID(body[field]) for field in _OTHER_MEMORY_FIELDS if field in body]
        visible = await self._deps.event_visibility.load_visible(
            principal, [*subject_ids, *other_ids]
        )
        if not all(memory_id in visible for memory_id in subject_ids) or not any(
            event_filter.matches_memory(visible[memory_id]) for memory_id in subject_ids
        ):
            return None
        return name, _build_event_data(name, body, visible, subject_ids[0])


def _build_event_data(
    name: str, body: dict[str, Any], visible: dict[UUID, VisibleMemory], subject_id: UUID
) -> dict[str, Any]:
    """Builds the public data of an event: ids and scope, never content."""
    own_fields = {
        field: body[field] for field in ("id", "version", *_EDGE_FIELDS, "type") if field in body
    }
    others = {
        field: body[field]
        for field in _OTHER_MEMORY_FIELDS
        if field in body and UUID(body[field]) in visible
    }
    memory = visible[subject_id]
    return {"event": name, **own_fields, **others, "scope": memory.scope, "kind": memory.kind}


def _encode_event(cursor: str, name: str, data: dict[str, Any]) -> bytes:
    return f"id: {cursor}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _encode_heartbeat(cursor: str) -> bytes:
    """A sign of life that moves the place to resume from past what was not for this watcher."""
    return f": alive\nid: {cursor}\n\n".encode()


def _build_event_filter(principal: Principal, query: EventQuery) -> EventFilter:
    scopes = None if query.scope is None else [parse_scope(scope) for scope in query.scope]
    principal.check_read(scopes or ())
    kinds = None if query.kind is None else {parse_kind(kind).value for kind in query.kind}
    for event in query.event or ():
        if event not in MEMORY_EVENTS:
            raise InvalidInput("event", f"{event[:40]!r} is none: use {', '.join(MEMORY_EVENTS)}")
    return EventFilter(scopes, kinds, None if query.event is None else set(query.event))


def _decode_position(
    call: Call[None, EventQuery] | Call[None, EventPageQuery], cursor_cipher: CursorCipher
) -> int | None:
    """Decodes the position to resume from.

    The header takes precedence, because a client that reconnects keeps its URL.
    """
    header = call.headers.get("Last-Event-ID", "").strip()
    field = "Last-Event-ID" if header else "after"
    cursor = header or call.query.after
    return None if cursor is None else cursor_cipher.decrypt(EVENT_CURSOR_PURPOSE, cursor, field)

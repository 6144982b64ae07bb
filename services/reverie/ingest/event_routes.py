"""What happens to memories, as server-sent events: filtered by what the key may read, resumable."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from reverie.bus.port import Stored
from reverie.contracts.base import Name, Text
from reverie.contracts.events import MEMORY, MEMORY_EVENTS, memory_subject
from reverie.contracts.happened import EventPage, Happened
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, Unavailable
from reverie.domain.kinds import parse_kind
from reverie.domain.scopes import parse_scope
from reverie.ingest.parts import Parts
from reverie.runtime.body import Query
from reverie.runtime.calls import Call
from reverie.runtime.endless import ticking
from reverie.runtime.routes import Route
from reverie.runtime.streams import Streamed
from reverie.store.marks import LONGEST, Marks
from reverie.store.watched import Seen

ALIVE_SECONDS = 15.0
"""So often a silent stream is shown to be alive, and its key looked up again."""
PLACE = "a place among events"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-store",
}
_EXAMPLE = (
    "id: p1.3f9c\nevent: remembered\n"
    'data: {"event": "remembered", "scope": "project/shop", "kind": "decision"}\n\n'
)
_MESSAGE = (
    '{"id": "p1.3f9c", "event": "remembered", '
    '"data": {"event": "remembered", "scope": "project/shop", "kind": "decision"}}'
)
_BATCH = 100
_BATCHES = 10
"""A page looks at so many messages at a time, and so many times at most."""
_ENDS = ("from", "to")
_OTHERS = ("merged", "by", "into")


class EventQuery(Query):
    """Only of these scopes (and below), kinds and events; `after` stands for Last-Event-ID."""

    scope: list[Text] | None = None
    kind: list[Name] | None = None
    event: list[Name] | None = None
    after: Annotated[str, Field(min_length=1, max_length=LONGEST)] | None = None


class EventPageQuery(EventQuery):
    """The same; how many at most."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50


@dataclass(frozen=True)
class Only:
    """What a watcher wants to hear of; None is all."""

    scopes: list[str] | None
    kinds: set[str] | None
    events: set[str] | None

    def wants(self, memory: Seen) -> bool:
        """Whether the memory is of a scope and kind asked for."""
        return self._inside(memory.scope) and (self.kinds is None or memory.kind in self.kinds)

    def hears(self, who: Principal, scope: str) -> bool:
        """Whether a dream over the scope may and should be told of; it is of no kind."""
        return self.kinds is None and self._inside(scope) and who.may_read(scope)

    def _inside(self, scope: str) -> bool:
        return self.scopes is None or any(
            scope == one or scope.startswith(f"{one}/") for one in self.scopes
        )


def routes(parts: Parts) -> list[Route]:
    """The table of events."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/events", doors.events, query=EventQuery, streams=True,
              gives={"text/event-stream": _EXAMPLE},
              summary="What happens to memories, as server-sent events"),
        Route("GET", "/v1/events/ws", doors.events, query=EventQuery, streams=True, socket=True,
              status=101, gives={"application/json": _MESSAGE},
              summary="The same over a WebSocket; a message of the client asks for other events"),
        Route("GET", "/v1/events/page", doors.page, query=EventPageQuery, answer=EventPage,
              summary="What happened since a place among events, for who asks now and then"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._watching = 0

    async def events(self, call: Call[None, EventQuery]) -> Streamed:
        """`GET /v1/events`."""
        who = call.principal
        only, marks = _only(who, call.query), await self._parts.watched.marks(who)
        after = _after(call, marks)
        first, last = await self._parts.bus.ends(MEMORY)
        lost = after is not None and not first - 1 <= after <= last
        begin = last if after is None else after
        if lost:
            begin = first - 1
        return Streamed(self._feed(who, only, marks, begin, lost), HEADERS, endless=True)

    async def page(self, call: Call[None, EventPageQuery]) -> EventPage:
        """`GET /v1/events/page`: without a place, none but the place to begin from."""
        who = call.principal
        only, marks = _only(who, call.query), await self._parts.watched.marks(who)
        after = _after(call, marks)
        first, last = await self._parts.bus.ends(MEMORY)
        if after is None:
            return EventPage(items=[], place=marks.seal(PLACE, last))
        gap = not first - 1 <= after <= last
        place = first - 1 if gap else after
        items: list[Happened] = []
        subject = memory_subject(who.tenant_name, ">")
        for _ in range(_BATCHES):
            batch = await self._parts.bus.page(MEMORY, subject, place, _BATCH)
            for found in batch:
                place = found.seq
                if told := await self._told(who, only, found):
                    items.append(_happened(marks.seal(PLACE, place), *told))
                if len(items) == call.query.limit:
                    return _page(items, marks.seal(PLACE, place), gap, more=True)
            if not batch:
                return _page(items, marks.seal(PLACE, max(place, last)), gap, more=False)
        return _page(items, marks.seal(PLACE, place), gap, more=True)

    async def _feed(
        self, who: Principal, only: Only, marks: Marks, place: int, lost: bool
    ) -> AsyncGenerator[bytes, None]:
        with self._place():
            at = marks.seal(PLACE, place)
            yield _event(at, "reset", {}) if lost else _alive(at)
            due = monotonic() + ALIVE_SECONDS
            subject = memory_subject(who.tenant_name, ">")
            async with (
                aclosing(self._parts.bus.watch(MEMORY, subject, place)) as watched,
                aclosing(ticking(watched, ALIVE_SECONDS / 3)) as ticks,
            ):
                async for found in ticks:
                    place = found.seq if found else place
                    told = await self._told(who, only, found) if found else None
                    if told:
                        yield _event(marks.seal(PLACE, place), *told)
                    if monotonic() < due:
                        continue
                    if not await self._parts.watched.stands(who):
                        return
                    yield _alive(marks.seal(PLACE, place))
                    due = monotonic() + ALIVE_SECONDS

    @contextmanager
    def _place(self) -> Iterator[None]:
        """One of the places for watchers. Raises `Unavailable` where none is free."""
        limit = self._parts.settings.event_watchers
        if self._watching >= limit:
            raise Unavailable(
                "a place to watch from", f"{limit} watch already (event_watchers)", 5.0
            )
        self._watching += 1
        try:
            yield
        finally:
            self._watching -= 1

    async def _told(
        self, who: Principal, only: Only, found: Stored
    ) -> tuple[str, dict[str, Any]] | None:
        """The name of an event and what is told of it; None where nothing may or should be."""
        name = found.subject.split(".", 2)[2]
        if only.events is not None and name not in only.events:
            return None
        body = json.loads(found.data)
        if "run" in body:
            return (name, _run(name, body)) if only.hears(who, body["scope"]) else None
        if not (about := _about(body)):
            return None
        others = [UUID(body[other]) for other in _OTHERS if other in body]
        seen = await self._parts.watched.seen(who, [*about, *others])
        if not all(one in seen for one in about) or not any(only.wants(seen[one]) for one in about):
            return None
        return name, _data(name, body, seen, about[0])


def _page(items: list[Happened], place: str, gap: bool, more: bool) -> EventPage:
    return EventPage(items=items, place=place, gap=gap, more=more)


def _happened(place: str, name: str, data: dict[str, Any]) -> Happened:
    return Happened(event=name, place=place, data=data)


def _run(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """What is told of a dream: numbers, no content."""
    return {"event": name} | {key: body[key] for key in body if key not in ("v", "tenant")}


def _about(body: dict[str, Any]) -> list[UUID]:
    """The memories that an event speaks of; none where it names none."""
    named = [end for end in _ENDS if end in body] or ["id"]
    return [UUID(body[name]) for name in named if name in body]


def _data(name: str, body: dict[str, Any], seen: dict[UUID, Seen], about: UUID) -> dict[str, Any]:
    """What is told of an event: ids, where they lie, never content."""
    told = {field: body[field] for field in ("id", "version", *_ENDS, "type") if field in body}
    others = {
        field: body[field] for field in _OTHERS if field in body and UUID(body[field]) in seen
    }
    memory = seen[about]
    return {"event": name, **told, **others, "scope": memory.scope, "kind": memory.kind}


def _event(place: str, name: str, data: dict[str, Any]) -> bytes:
    return f"id: {place}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _alive(place: str) -> bytes:
    """A sign of life that moves the place to resume from past what was not for this watcher."""
    return f": alive\nid: {place}\n\n".encode()


def _only(who: Principal, query: EventQuery) -> Only:
    scopes = None if query.scope is None else [parse_scope(scope) for scope in query.scope]
    who.check_read(scopes or ())
    kinds = None if query.kind is None else {parse_kind(kind).value for kind in query.kind}
    for event in query.event or ():
        if event not in MEMORY_EVENTS:
            raise Invalid("event", f"{event[:40]!r} is none: use {', '.join(MEMORY_EVENTS)}")
    return Only(scopes, kinds, None if query.event is None else set(query.event))


def _after(call: Call[None, EventQuery] | Call[None, EventPageQuery], marks: Marks) -> int | None:
    """Where to go on: the header wins, for a client that reconnects keeps its address."""
    given = call.headers.get("Last-Event-ID", "").strip()
    field = "Last-Event-ID" if given else "after"
    place = given or call.query.after
    return None if place is None else marks.open(PLACE, place, field)

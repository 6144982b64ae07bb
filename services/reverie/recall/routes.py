"""What recall answers over HTTP, and what it passes on to the other services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Moment, Name, Tag
from reverie.contracts.memories import MemoryDetail, MemoryPage
from reverie.contracts.recall import Recall, RecallAnswer
from reverie.contracts.sessions import TurnPage
from reverie.contracts.views import memory_body
from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, TooLarge
from reverie.domain.fields import naming
from reverie.domain.kinds import Kind, parse_kind
from reverie.domain.memory import Memory, Status
from reverie.domain.open_files import clean
from reverie.domain.scopes import parse_scope
from reverie.domain.words import query_text
from reverie.recall.answers import edge_body, memory_detail, recalled, turn_body
from reverie.recall.parts import Parts
from reverie.recall.seen import seen_from, seen_in, session_of
from reverie.recall.story import Question
from reverie.recall.trace import traced
from reverie.runtime.body import Query
from reverie.runtime.calls import Call, Reply
from reverie.runtime.forward import Forward
from reverie.runtime.paging import ById, PageQuery, Position, ScopedQuery, cut_page, decode_cursor
from reverie.runtime.routes import Route
from reverie.store.memories import VISIBLE, ListFilter
from reverie.store.search import Filter
from reverie.store.sessions import Session


class AsOf(Query):
    """A moment in the past: what was known then is answered."""

    as_of: Moment | None = None


class MemoryQuery(ScopedQuery):
    """Filters of `GET /v1/memories`; `valid_at`: what was true then."""

    valid_at: Moment | None = None

    kind: list[Name] | None = None
    status: list[Status] | None = None
    tag: Tag | None = None
    key: Name | None = None
    session: UUID | None = None


class ByOrd(Position):
    """A cursor of a list in the order of turns."""

    ord: Annotated[int, Field(ge=0, le=2**31 - 1)]


def routes(parts: Parts) -> list[Route]:
    """The table of recall."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/recall", doors.recall, Recall, answer=RecallAnswer, reads=True,
              summary="Find the memories that answer a question"),
        Route("GET", "/v1/memories", doors.memories, query=MemoryQuery, answer=MemoryPage,
              summary="List memories, newest first"),
        Route("GET", "/v1/memories/{id}", doors.memory, query=AsOf, answer=MemoryDetail,
              tagged=True, summary="One memory with its neighbours; the id may be short"),
        Route("GET", "/v1/sessions/{id}/turns", doors.turns, query=PageQuery, answer=TurnPage,
              summary="The turns of a session, in order"),
    ]  # fmt: skip


def forwards(parts: Parts) -> list[Forward]:
    """What the gateway passes on, so that an agent needs one address."""
    settings = parts.settings
    to_ingest = (
        "/v1/admin",
        "/v1/claims",
        "/v1/links",
        "/v1/memories/{id}",
        "/v1/projects",
        "/v1/remember",
        "/v1/reviews",
        "/v1/sessions",
        "/v1/tasks",
        "/v1/turns",
        "/v1/vault",
    )
    to_dream = ("/v1/dream", "/v1/dreams")
    to_staleness = ("/v1/stale",)
    return [
        *(Forward(prefix, "ingest", settings.ingest_url) for prefix in to_ingest),
        Forward("/v1/events", "ingest", settings.ingest_url, endless=True),
        Forward(
            "/v1/import",
            "ingest",
            settings.ingest_url,
            settings.import_limit,
            settings.transfer_timeout,
        ),
        Forward(
            "/v1/git",
            "staleness",
            settings.staleness_url,
            limit=settings.git_limit,
            limit_setting="git_limit",
        ),
        *(Forward(prefix, "dream", settings.dream_url) for prefix in to_dream),
        *(Forward(prefix, "staleness", settings.staleness_url) for prefix in to_staleness),
    ]


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def recall(self, call: Call[Recall, None]) -> RecallAnswer:
        """`POST /v1/recall`."""
        who, body = call.principal, call.body
        session, missing = await session_of(self._parts, who, body.session)
        question = self._question(who, body, session)
        if missing:
            question = replace(question, only=replace(question.only, scopes=[]))
        answer = await traced(self._parts, who, question, body.session)
        degraded = [*answer.degraded, *missing]
        self._parts.meters.answered("recall", degraded)
        if body.as_of is None:
            used = [hit.item.id for hit in answer.hits if isinstance(hit.item, Memory)]
            self._parts.used.take(who, body.session, used)
        words = query_text(body.query)
        return RecallAnswer(
            memories=[recalled(hit, words) for hit in answer.hits],
            edges=[edge_body(edge) for edge in answer.edges],
            search_mode=_mode(answer.degraded, now=question.as_of is None),
            degraded=degraded,
            tokens=answer.tokens,
            intent=answer.story.reading.intent.value,
            trace_id=call.trace_id,
        )

    def _question(self, who: Principal, body: Recall, session: Session | None) -> Question:
        size = len(body.query.encode())
        if size > self._parts.settings.content_limit:
            raise TooLarge("query", size, self._parts.settings.content_limit, "content_limit")
        status = [*VISIBLE, *(["archived"] if "archived" in body.include else [])]
        kinds = _each("kinds", _kind_name, body.kinds) if body.kinds else None
        scopes = seen_in(who, _named(who, body), session)
        return Question(
            text=body.query,
            only=_filter(body, scopes, status, kinds),
            limit=body.limit,
            budget_tokens=body.budget_tokens,
            depth=body.depth,
            turns="turns" in body.include,
            agent=session.agent if session else who.agent,
            min_confidence=body.min_confidence,
            as_of=body.as_of,
        )

    async def memories(self, call: Call[None, MemoryQuery]) -> MemoryPage:
        """`GET /v1/memories`."""
        who, query = call.principal, call.query
        only = ListFilter(
            scope=query.readable(who),
            kinds=[parse_kind(kind).value for kind in query.kind] if query.kind else None,
            status=[_listed(status) for status in query.status] if query.status else VISIBLE,
            tag=query.tag,
            key=query.key,
            session=query.session,
            valid_at=query.valid_at,
        )
        found = await self._parts.memories.page(who, query.below(), query.limit + 1, only)
        items, following = cut_page(found, query.limit, lambda memory: ById(id=memory.id))
        lives = self._parts.settings.half_lives
        return MemoryPage(items=[memory_body(one, lives) for one in items], next=following)

    async def memory(self, call: Call[None, AsOf]) -> Reply:
        """`GET /v1/memories/{id}`."""
        who = call.principal
        if call.query.as_of:
            return await self._memory_then(who, call.path["id"], call.query.as_of)
        named = await self._parts.memories.named(who, call.path["id"])
        memory, near = await self._parts.memories.shown(who, named)
        standing = None
        if memory.kind is Kind.TASK:
            standing = await self._parts.tasks.standing(who, memory.id)
        body = memory_detail(memory, near, self._parts.settings.half_lives, standing)
        headers = {"ETag": f'"{memory.version}"'}
        if memory.id != named:
            body.merged_from = named
            headers["Content-Location"] = f"/v1/memories/{memory.id}"
        return Reply(body=body, headers=headers)

    async def _memory_then(self, who: Principal, text: str, at: datetime) -> Reply:
        """What was known of a memory at `at`; it has no ETag, for it cannot be edited."""
        past = self._parts.past
        named = await past.named(who, text, at)
        known = await past.get(who, await past.resolve(who, str(named), at), at)
        near = await past.neighbours(who, known.id, at)
        standing = None
        if known.kind is Kind.TASK:
            standing = await self._parts.tasks.standing(who, known.id, at)
        body = memory_detail(known, near, self._parts.settings.half_lives, standing, at)
        body.merged_from = named if named != known.id else None
        return Reply(body=body)

    async def turns(self, call: Call[None, PageQuery]) -> TurnPage:
        """`GET /v1/sessions/{id}/turns`."""
        who, query = call.principal, call.query
        named = await self._parts.ids.named(who, "session", call.path["id"])
        session = await self._parts.sessions.get(who, named)
        after = decode_cursor(query.cursor, ByOrd)
        found = await self._parts.sessions.turns(
            who, session.id, after.ord if after else -1, query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda turn: ByOrd(ord=turn.ord))
        return TurnPage(items=[turn_body(one) for one in items], next=following)


def _named(who: Principal, body: Recall) -> list[str] | None:
    """The scopes, or those of the project, that the body names; None where it names none."""
    if body.project is None:
        return None if body.scopes is None else _each("scopes", parse_scope, body.scopes)
    if body.scopes is not None or body.session is not None:
        raise Invalid("project", "give a project, scopes or a session, not several of them")
    return seen_from(who, body.project)


def _filter(body: Recall, scopes: list[str], status: list[str], kinds: list[str] | None) -> Filter:
    if body.files and body.as_of:
        raise Invalid("files", "cannot be asked together with as_of: leave one of them out")
    return Filter(
        scopes,
        status,
        kinds,
        tiers=body.tiers and [tier.value for tier in body.tiers],
        tags=body.tags,
        files=clean(body.files or []) or body.files,
        since=body.since,
        until=body.until,
        valid_at=body.valid_at,
    )


def _kind_name(name: str) -> str:
    return parse_kind(name).value


def _each(field: str, parse: Callable[[str], str], values: Sequence[str]) -> list[str]:
    """Every value parsed; raises `Invalid` naming the place of the first wrong one."""
    parsed = []
    for place, value in enumerate(values):
        with naming(f"{field}.{place}"):
            parsed.append(parse(value))
    return parsed


def _mode(degraded: list[str], now: bool) -> str:
    """Which arms answered: hybrid, words, meaning or none; of the past words alone can."""
    asked = ("words", "meaning") if now else ("words",)
    there = [arm for arm in asked if arm not in degraded and "store" not in degraded]
    return "hybrid" if len(there) == 2 else (there[0] if there else "none")


def _listed(status: Status) -> str:
    if status is Status.DELETED:
        raise Invalid("status", "forgotten memories are not listed")
    return status.value

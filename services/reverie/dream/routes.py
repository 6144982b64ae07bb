"""What dream takes and answers over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.bus.relay import publish_now
from reverie.contracts.dreams import (
    DreamDecision,
    DreamDetail,
    DreamInput,
    DreamPage,
    DreamRequested,
    DreamRun,
    RequestDream,
    ScopeWaiting,
    WaitingPage,
)
from reverie.domain.errors import Invalid
from reverie.domain.scopes import parse_scope
from reverie.dream.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import (
    ById,
    PageQuery,
    Position,
    ScopedQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.dream_runs import Decided, Run, Waiting
from reverie.store.dreams import ASKED


class ByNumber(Position):
    """A cursor of the decisions of a run."""

    no: int


class ByScope(Position):
    """A cursor of a list in the order of scopes."""

    scope: Annotated[str, Field(max_length=400)]


def routes(parts: Parts) -> list[Route]:
    """The table of dream."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/dream", doors.request, RequestDream, answer=DreamRequested, status=202,
              summary="Digest what waits in a scope, or in a session's scope, now"),
        Route("GET", "/v1/dream", doors.waiting, query=ScopedQuery, answer=WaitingPage,
              summary="What waits in each scope, and what is asked for"),
        Route("GET", "/v1/dreams", doors.runs, query=ScopedQuery, answer=DreamPage,
              summary="What was dreamt, newest first"),
        Route("GET", "/v1/dreams/{id}", doors.run, query=PageQuery, answer=DreamDetail,
              summary="One dream: what went in, what came out, and why"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def request(self, call: Call[RequestDream, None]) -> DreamRequested:
        """`POST /v1/dream`."""
        who, body, parts = call.principal, call.body, self._parts
        if body.scope and body.session:
            raise Invalid("scope", "give a scope or a session, not both")
        if body.session:
            scope = (await parts.sessions.get(who, body.session)).scope
        else:
            scope = parse_scope(body.scope) if body.scope else who.default_scope()
        who.check_write(scope)
        status, ticket = await parts.dreams.request(
            who.tenant, who.tenant_name, scope, ASKED, inject_headers()
        )
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, [ticket]))
        return DreamRequested(scope=scope, status=status)

    async def waiting(self, call: Call[None, ScopedQuery]) -> WaitingPage:
        """`GET /v1/dream`."""
        who, query = call.principal, call.query
        after = decode_cursor(query.cursor, ByScope)
        found = await self._parts.runs.waiting(
            who, query.readable(who), after.scope if after else None, query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda one: ByScope(scope=one.scope))
        return WaitingPage(items=[_waiting(one) for one in items], next=following)

    async def runs(self, call: Call[None, ScopedQuery]) -> DreamPage:
        """`GET /v1/dreams`."""
        who, query = call.principal, call.query
        found = await self._parts.dreams.runs(
            who, query.below(), query.readable(who), query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda run: ById(id=run.id))
        return DreamPage(items=[_body(run) for run in items], next=following)

    async def run(self, call: Call[None, PageQuery]) -> DreamDetail:
        """`GET /v1/dreams/{id}`."""
        who, limit = call.principal, call.query.limit
        id = await self._parts.ids.named(who, "dream", call.path["id"])
        run, taken = await self._parts.runs.run(who, id)
        after = decode_cursor(call.query.cursor, ByNumber)
        found = await self._parts.runs.decisions(who, id, after.no if after else 0, limit + 1)
        items, following = cut_page(found, limit, lambda one: ByNumber(no=one.no))
        return DreamDetail(
            **_body(run).model_dump(),
            input=[DreamInput(**vars(one)) for one in taken],
            decisions=[_decision(one) for one in items],
            next=following,
        )


def _body(run: Run) -> DreamRun:
    told = {name: value for name, value in vars(run).items() if name not in ("started", "ended")}
    return DreamRun(**told, started_at=run.started, ended_at=run.ended)


def _decision(one: Decided) -> DreamDecision:
    return DreamDecision(**vars(one))


def _waiting(one: Waiting) -> ScopeWaiting:
    told = {name: value for name, value in vars(one).items() if name != "asked"}
    return ScopeWaiting(**told, asked_at=one.asked)

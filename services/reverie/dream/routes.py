"""What dream takes and answers over HTTP."""

from __future__ import annotations

from reverie.bus.relay import publish_now
from reverie.contracts.sessions import DreamPage, DreamRequested, DreamRun, RequestDream
from reverie.domain.errors import Invalid
from reverie.domain.scopes import parse_scope
from reverie.dream.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, ScopedQuery, cut_page
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers
from reverie.store.dreams import ASKED, Run


def routes(parts: Parts) -> list[Route]:
    """The table of dream."""
    doors = Doors(parts)
    return [
        Route("POST", "/v1/dream", doors.request, RequestDream, answer=DreamRequested, status=202,
              summary="Digest what waits in a scope, or in a session's scope, now"),
        Route("GET", "/v1/dreams", doors.runs, query=ScopedQuery, answer=DreamPage,
              summary="What was dreamt, newest first"),
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

    async def runs(self, call: Call[None, ScopedQuery]) -> DreamPage:
        """`GET /v1/dreams`."""
        who, query = call.principal, call.query
        found = await self._parts.dreams.runs(
            who, query.below(), query.readable(who), query.limit + 1
        )
        items, following = cut_page(found, query.limit, lambda run: ById(id=run.id))
        return DreamPage(items=[_body(run) for run in items], next=following)


def _body(run: Run) -> DreamRun:
    return DreamRun(
        id=run.id,
        scope=run.scope,
        status=run.status,
        started_at=run.started,
        ended_at=run.ended,
        turns=run.turns,
        created=run.created,
        reinforced=run.reinforced,
        superseded=run.superseded,
        sessions=run.sessions,
        error=run.error,
    )

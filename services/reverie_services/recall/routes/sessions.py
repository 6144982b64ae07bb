"""Routes that list sessions and the turns of one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reverie.contracts.base import Name, NonBlankStr
from reverie.contracts.sessions import SessionBody, SessionPage, TurnBody, TurnPage
from reverie.domain.access.scopes import slugify
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import (
    CursorPosition,
    IdCursor,
    PageQuery,
    cut_page,
    decode_cursor,
)
from reverie.runtime.http.routes import RouteTable
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import SessionDependencies


class SessionQuery(PageQuery):
    """Filters of `GET /v1/sessions`; `session`: a full or short id, or a name."""

    agent: Name | None = None
    project: Name | None = None
    session: NonBlankStr | None = None


class TurnCursor(CursorPosition):
    """A cursor of a list in the order of turns."""

    ordinal: Annotated[int, Field(ge=0, le=2**31 - 1)]


routes = RouteTable[SessionDependencies]()


@routes.add("GET /v1/sessions")
async def list_sessions(deps: SessionDependencies, call: Call[None, SessionQuery]) -> SessionPage:
    """List sessions, newest first."""
    principal, query = call.principal, call.query
    if query.session is not None:
        session_id = await deps.short_ids.resolve(principal, "session", query.session)
        return SessionPage(
            items=[_build_session_body(await deps.sessions.get(principal, session_id))]
        )
    project = slugify(query.project) if query.project else None
    rows = await deps.sessions.page(
        principal, query.before_id(), query.limit + 1, query.agent, project
    )
    items, next_cursor = cut_page(rows, query.limit, lambda session: IdCursor(id=session.id))
    return SessionPage(items=[_build_session_body(item) for item in items], next=next_cursor)


@routes.add("GET /v1/sessions/{id}/turns")
async def list_turns(deps: SessionDependencies, call: Call[None, PageQuery]) -> TurnPage:
    """List the turns of a session in order."""
    principal, query = call.principal, call.query
    session_id = await deps.short_ids.resolve(principal, "session", call.path["id"])
    session = await deps.sessions.get(principal, session_id)
    after = decode_cursor(query.cursor, TurnCursor)
    rows = await deps.sessions.list_turns(
        principal, session.id, after.ordinal if after else -1, query.limit + 1
    )
    items, next_cursor = cut_page(rows, query.limit, lambda turn: TurnCursor(ordinal=turn.ordinal))
    return TurnPage(items=[TurnBody(**vars(item)) for item in items], next=next_cursor)


def _build_session_body(session: SessionRecord) -> SessionBody:
    return SessionBody(
        **vars(session),
        user=session.user_name,
        group=session.group_name,
        started_at=session.started,
        ended_at=session.ended,
    )

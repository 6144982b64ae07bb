"""Route that lists sessions."""

from __future__ import annotations

from functools import partial

from reverie.contracts.base import Name, NonBlankStr
from reverie.contracts.sessions import SessionBody, SessionPage
from reverie.domain.access.scopes import slugify
from reverie.runtime.http.calls import Call
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.routes import Route
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies


class SessionQuery(PageQuery):
    """Filters of `GET /v1/sessions`; `session`: the one of this id, which may be short, or name."""

    agent: Name | None = None
    project: Name | None = None
    session: NonBlankStr | None = None


def build_session_routes(deps: RecallDependencies) -> list[Route]:
    """The table of sessions."""
    return [
        Route(
            "GET",
            "/v1/sessions",
            partial(_list_sessions, deps),
            query=SessionQuery,
            response=SessionPage,
            summary="List sessions, newest first",
        ),
    ]


async def _list_sessions(deps: RecallDependencies, call: Call[None, SessionQuery]) -> SessionPage:
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


def _build_session_body(session: SessionRecord) -> SessionBody:
    return SessionBody(
        id=session.id,
        agent=session.agent,
        scope=session.scope,
        project=session.project,
        branch=session.branch,
        user=session.user_name,
        external_id=session.external_id,
        turns=session.turns,
        started_at=session.started,
        ended_at=session.ended,
        summary=session.summary,
    )

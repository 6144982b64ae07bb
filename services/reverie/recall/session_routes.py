"""What recall answers of sessions over HTTP: the list. One session's turns are in `routes`."""

from __future__ import annotations

from functools import partial

from reverie.contracts.base import Name, Text
from reverie.contracts.sessions import SessionBody, SessionPage
from reverie.domain.scopes import slug
from reverie.recall.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.paging import ById, PageQuery, cut_page
from reverie.runtime.routes import Route
from reverie.store.sessions import Session


class SessionQuery(PageQuery):
    """Filters of `GET /v1/sessions`; `session`: the one of this id, which may be short, or name."""

    agent: Name | None = None
    project: Name | None = None
    session: Text | None = None


def routes(parts: Parts) -> list[Route]:
    """The table of sessions."""
    return [
        Route("GET", "/v1/sessions", partial(_sessions, parts), query=SessionQuery,
              answer=SessionPage, summary="List sessions, newest first"),
    ]  # fmt: skip


async def _sessions(parts: Parts, call: Call[None, SessionQuery]) -> SessionPage:
    who, query = call.principal, call.query
    if query.session is not None:
        named = await parts.ids.named(who, "session", query.session)
        return SessionPage(items=[_body(await parts.sessions.get(who, named))])
    project = slug(query.project) if query.project else None
    found = await parts.sessions.page(who, query.below(), query.limit + 1, query.agent, project)
    items, following = cut_page(found, query.limit, lambda session: ById(id=session.id))
    return SessionPage(items=[_body(one) for one in items], next=following)


def _body(session: Session) -> SessionBody:
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

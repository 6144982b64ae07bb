"""Resolves which scopes a request may search, from a session, a project, or names."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import default_read_scopes, parse_scope, restrict_to_user, slugify
from reverie.domain.core.errors import Unavailable, field_context
from reverie.runtime.process.asyncio_helpers import run_with_timeout
from reverie.store.sessions.sessions import SessionRecord, SessionStore

log = structlog.get_logger("reverie.recall")

T = TypeVar("T")


async def or_none_if_unavailable(work: Awaitable[T], timeout_seconds: float) -> T | None:
    """Works like `run_with_timeout`, but returns None if the store is unavailable or late."""
    try:
        return await run_with_timeout(work, timeout_seconds)
    except (TimeoutError, Unavailable) as error:
        log.warning("store_unavailable", error=type(error).__name__)
        return None


async def find_session(
    sessions: SessionStore, principal: Principal, session_id: UUID | None, seconds: float
) -> tuple[SessionRecord | None, list[str]]:
    """Finds the named session; returns it with the missing parts.

    `session` is missing if the store does not answer. A caller that names an unreadable session
    must see nothing. Raises `NotFound`.
    """
    if session_id is None:
        return None, []
    session = await or_none_if_unavailable(sessions.get(principal, session_id), seconds)
    return session, [] if session else ["session"]


def parse_scopes(names: Sequence[str] | None) -> list[str] | None:
    """The scopes of these names. Raises `InvalidInput` naming the index of the first wrong one."""
    if names is None:
        return None
    parsed = []
    for index, name in enumerate(names):
        with field_context(f"scopes.{index}"):
            parsed.append(parse_scope(name))
    return parsed


def resolve_project_scopes(principal: Principal, project: str) -> list[str]:
    """The scopes that a session of a project sees by default. Raises `Forbidden`."""
    project_scope = f"project/{slugify(project)}"
    principal.check_read([project_scope])
    default_scopes = default_read_scopes(project_scope, principal.agent, principal.effective_user)
    return principal.narrow_to_readable(default_scopes)


def resolve_scopes(
    principal: Principal, requested_scopes: list[str] | None, session: SessionRecord | None
) -> list[str]:
    """The scope patterns to search: the requested ones, a session's, or all readable ones.

    What other users know for themselves is searched only where a scope names it.
    """
    if session is None:
        principal.check_read(requested_scopes or ())
        own_view = restrict_to_user(principal.reads, principal.effective_user)
        return list(own_view) if requested_scopes is None else requested_scopes
    session_principal = replace(principal, agent=session.agent)
    if requested_scopes is not None:
        session_principal.check_read(requested_scopes)
        return requested_scopes
    default_scopes = default_read_scopes(
        session.scope, session.agent, session.user_name, session.group_name
    )
    return session_principal.narrow_to_readable([f"session/{session.id}", *default_scopes])

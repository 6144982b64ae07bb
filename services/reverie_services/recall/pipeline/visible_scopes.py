"""Resolves which scopes a request may search, from a session, a project, or names."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import default_read_scopes, slugify
from reverie.domain.core.errors import Unavailable
from reverie.runtime.process.asyncio_helpers import run_with_timeout
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.dependencies import RecallDependencies

log = structlog.get_logger("reverie_services.recall")

T = TypeVar("T")


async def or_none_if_unavailable(work: Awaitable[T], timeout_seconds: float) -> T | None:
    """As `run_with_timeout`, but None where the store does not answer or is late."""
    try:
        return await run_with_timeout(work, timeout_seconds)
    except (TimeoutError, Unavailable) as error:
        log.warning("store_away", error=type(error).__name__)
        return None


async def find_session(
    deps: RecallDependencies, principal: Principal, session_id: UUID | None
) -> tuple[SessionRecord | None, list[str]]:
    """The session that is named, and what is missing: the session, where the store is away.

    Raises `NotFound`. Who names a session that cannot be looked up is to be shown nothing.
    """
    if session_id is None:
        return None, []
    session = await or_none_if_unavailable(
        deps.sessions.get(principal, session_id), deps.settings.arm_timeout
    )
    return session, [] if session else ["session"]


def resolve_project_scopes(principal: Principal, project: str) -> list[str]:
    """What a session of a project sees by default. Raises `Forbidden`."""
    project_scope = f"project/{slugify(project)}"
    principal.check_read([project_scope])
    return principal.narrow_to_readable(default_read_scopes(project_scope, principal.agent, None))


def resolve_scopes(
    principal: Principal, requested_scopes: list[str] | None, session: SessionRecord | None
) -> list[str]:
    """The scope patterns to look through: those named, a session's, or all that may be read."""
    if session is None:
        principal.check_read(requested_scopes or ())
        return list(principal.reads) if requested_scopes is None else requested_scopes
    session_principal = replace(principal, agent=session.agent)
    if requested_scopes is not None:
        session_principal.check_read(requested_scopes)
        return requested_scopes
    default_scopes = default_read_scopes(session.scope, session.agent, session.user_name)
    return session_principal.narrow_to_readable([f"session/{session.id}", *default_scopes])

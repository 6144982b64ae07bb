"""Which scopes are looked through for somebody who asks."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.scopes import reading_scopes, slug
from reverie.recall.away import unless_away
from reverie.recall.parts import Parts
from reverie.store.sessions import Session


async def session_of(
    parts: Parts, who: Principal, named: UUID | None
) -> tuple[Session | None, list[str]]:
    """The session that is named, and what is missing: the session, where the store is away.

    Raises `NotFound`. Who names a session that cannot be looked up is to be shown nothing.
    """
    if named is None:
        return None, []
    found = await unless_away(parts.sessions.get(who, named), parts.settings.arm_seconds)
    return found, [] if found else ["session"]


def seen_from(who: Principal, project: str) -> list[str]:
    """What a session of a project sees by default. Raises `Forbidden`."""
    home = f"project/{slug(project)}"
    who.check_read([home])
    return who.seen_through(reading_scopes(home, who.agent, None))


def seen_in(who: Principal, named: list[str] | None, session: Session | None) -> list[str]:
    """The scope patterns to look through: those named, a session's, or all that may be read."""
    if session is None:
        who.check_read(named or ())
        return list(who.reads) if named is None else named
    acting = replace(who, agent=session.agent)
    if named is not None:
        acting.check_read(named)
        return named
    own = reading_scopes(session.scope, session.agent, session.user_name)
    return acting.seen_through([f"session/{session.id}", *own])

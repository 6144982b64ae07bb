"""Which scopes are looked through for somebody who asks."""

from __future__ import annotations

from dataclasses import replace

from reverie.domain.access import Principal
from reverie.domain.scopes import reading_scopes
from reverie.store.sessions import Session


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

"""Short ids: the end or the beginning of an id, as a person types it, and the one that it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import asyncpg

from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, NotFound
from reverie.domain.ids import part_of_id
from reverie.store.database import Database, Tenant

What = Literal["session", "dream", "trace", "review", "link", "key"]
TOLD = 5
"""So many are named where a short id means several; a query reads one more."""
_AGENTS = frozenset({"session", "trace"})
"""What belongs to an agent, so that a key of another does not see it."""


class ShortIds:
    """Finds what a short id means, among what the key may see."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def named(self, who: Principal, what: What, text: str) -> UUID:
        """The full id; of a session also by the agent's own name for it.

        Raises `NotFound`, and `Invalid` where it means several.
        """
        if (full := full_id(text)) is not None:
            return full
        part = part_of_id(text)
        if part is None and what != "session":
            raise Invalid("id", f"{text[:40]!r} is not an id")
        given = (part.digits, part.low, part.high) if part else (None, None, None)
        more = (who.agent,) if what in _AGENTS else ()
        named = (text,) if what == "session" else ()
        async with self._db.looking(who.tenant) as tenant:
            found = await _rows(tenant, what, (*given, list(who.reads), *more, *named))
        return only_id(what, text, found)


async def _rows(tenant: Tenant, what: What, given: tuple[object, ...]) -> list[asyncpg.Record]:
    match what:
        case "session":
            return await tenant.rows("session_named", *given)
        case "dream":
            return await tenant.rows("dream_named", *given)
        case "trace":
            return await tenant.rows("trace_named", *given)
        case "review":
            return await tenant.rows("review_named", *given)
        case "link":
            return await tenant.rows("link_named", *given)
        case "key":
            return await tenant.rows("key_named", *given)


def full_id(text: str) -> UUID | None:
    """A full id; None where the text is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


def only_id(what: str, text: str, found: Sequence[asyncpg.Record]) -> UUID:
    """The one id that was found; of several the newest are told with what they are.

    Raises `NotFound` or `Invalid`.
    """
    if not found:
        raise NotFound(what, text[:40])
    if len(found) > 1:
        told = ", ".join(f"{row['id']} ({_line(row['label'])})" for row in found[:TOLD])
        many = "memories" if what == "memory" else f"{what}s"
        more = ", ..." if len(found) > TOLD else ""
        raise Invalid("id", f"{text[:40]} means several {many}, give more of it: {told}{more}")
    return UUID(str(found[0]["id"]))


def _line(label: str | None) -> str:
    return " ".join((label or "").split())[:60]

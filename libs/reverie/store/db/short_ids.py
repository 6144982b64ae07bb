"""Resolves shortened ids to the one full id that the principal may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput, NotFound
from reverie.domain.core.ids import parse_id_fragment
from reverie.store.db.database import Database

IdKind = Literal["session", "dream", "trace", "review", "link", "key"]
LISTED_MATCHES = 5
"""Maximum matches listed for an ambiguous short id; a query reads one more."""
_QUERIES: dict[IdKind, str] = {
    "session": "session_by_short_id",
    "dream": "dream_by_short_id",
    "trace": "trace_by_short_id",
    "review": "review_by_short_id",
    "link": "link_by_short_id",
    "key": "key_by_short_id",
}
_AGENT_KINDS = frozenset({"session", "trace"})
"""Kinds of data that belong to an agent; keys of other agents do not see them."""


class ShortIdResolver:
    """Finds what a short id means, among what the key may see."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def resolve(self, principal: Principal, kind: IdKind, text: str) -> UUID:
        """Returns the full id; of a session also by the agent's own name for it.

        Raises `NotFound`, and `InvalidInput` if it is ambiguous.
        """
        if (full_uuid := parse_full_id(text)) is not None:
            return full_uuid
        part = parse_id_fragment(text)
        if part is None and kind != "session":
            raise InvalidInput("id", f"{text[:40]!r} is not an id")
        id_range = (part.digits, part.low, part.high) if part else (None, None, None)
        agent_args = (principal.agent,) if kind in _AGENT_KINDS else ()
        name_args = (text,) if kind == "session" else ()
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                _QUERIES[kind], *id_range, list(principal.reads), *agent_args, *name_args
            )
        return require_single_match(kind, text, found)


def parse_full_id(text: str) -> UUID | None:
    """Parses a full id; returns None if the text is not one."""
    try:
        return UUID(text)
    except ValueError:
        return None


def require_single_match(kind: str, text: str, found: Sequence[asyncpg.Record]) -> UUID:
    """Returns the single match.

    Raises `NotFound`, or `InvalidInput`, which lists the newest matches with their descriptions.
    """
    if not found:
        raise NotFound(kind, text[:40])
    if len(found) > 1:
        listed = ", ".join(
            f"{row['id']} ({' '.join((row['label'] or '').split())[:60]})"
            for row in found[:LISTED_MATCHES]
        )
        plural = "memories" if kind == "memory" else f"{kind}s"
        ellipsis = ", ..." if len(found) > LISTED_MATCHES else ""
        raise InvalidInput(
            "id", f"{text[:40]} means several {plural}, give more of it: {listed}{ellipsis}"
        )
    return UUID(str(found[0]["id"]))

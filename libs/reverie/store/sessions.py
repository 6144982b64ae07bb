"""Sessions and their turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.dreaming import DEFAULT, Limits
from reverie.domain.errors import Conflict, NotFound
from reverie.store.database import Database
from reverie.store.effects import once


@dataclass(frozen=True)
class Session:
    """A conversation between an agent and a person."""

    id: UUID
    agent: str
    scope: str
    external_id: str | None
    user_name: str | None
    project: str | None
    branch: str | None
    turns: int
    started: datetime
    ended: datetime | None
    summary: str | None


@dataclass(frozen=True)
class NewTurn:
    """A turn about to be appended: redacted, its tool output condensed, its words prepared."""

    id: UUID
    role: str
    content: str
    words: str
    tool: str | None = None
    external_id: str | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class StoredTurn:
    """A turn as it stands."""

    id: UUID
    session: UUID
    ord: int
    role: str
    content: str
    at: datetime
    tool: str | None
    external_id: str | None
    digested: bool


@dataclass(frozen=True)
class Appended:
    """What an append did, how much of the session waits to be digested, and why its scope should
    dream now (None: it need not)."""

    accepted: int
    duplicates: int
    scope: str
    pending: int
    pending_chars: int
    due: str | None


class Sessions:
    """Sessions of a tenant; transcripts are read by their own agent only."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def start(
        self,
        who: Principal,
        new: UUID,
        scope: str,
        fields: Mapping[str, str | None],
        at: datetime | None = None,
    ) -> tuple[UUID, str]:
        """Starts a session, or finds the one of this external id. Answers its id and scope.

        `fields`: external_id, agent, user, project, branch; `at`: when it began (None: now). Raises
        `Conflict` where the external id is of a session that the key may not write to.
        """
        told = [fields.get(name) for name in ("external_id", "agent", "user", "project", "branch")]

        async def begin() -> dict[str, str]:
            row = await tenant.row("session_start", new, *told, scope, list(who.writable), at)
            if row is None:
                raise Conflict("external_id stands for a session elsewhere: choose another")
            return {"id": str(row["id"]), "scope": row["scope"]}

        async with self._db.tenant(who.tenant) as tenant:
            found = await once(tenant, "start", begin)
        return UUID(found["id"]), found["scope"]

    async def get(self, who: Principal, session: UUID) -> Session:
        """A session of the key's agent and scopes. Raises `NotFound`."""
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("session_get", session, list(who.reads), who.agent)
        if row is None:
            raise NotFound("session", str(session))
        return Session(**row)

    async def page(
        self,
        who: Principal,
        below: UUID | None,
        limit: int,
        agent: str | None = None,
        project: str | None = None,
    ) -> list[Session]:
        """Sessions newest first, below the id `below`: those that `get` would show.

        `agent` and `project` narrow them; a key of one agent sees no other's.
        """
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows(
                "session_list", list(who.reads), who.agent, agent, project, below, limit
            )
        return [Session(**row) for row in found]

    async def end(
        self, who: Principal, session: UUID, summary: str | None, at: datetime | None = None
    ) -> tuple[str, int]:
        """Ends a session that `get` showed, at `at` (None: now). Answers its scope and how many
        turns wait."""
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("session_end", session, summary, at)
        if row is None:
            raise NotFound("session", str(session))
        return row["scope"], row["pending"]

    async def append(
        self, who: Principal, session: UUID, turns: Sequence[NewTurn], limits: Limits = DEFAULT
    ) -> Appended:
        """Appends turns in order; an external id that stands is left out. Raises `NotFound`.

        `limits` say when a scope dreams, where tenant and project have set nothing else.
        """
        found = await self._db.call(
            "turns_append", who.tenant, session, [_fields(t) for t in turns], vars(limits)
        )
        if "problem" in found:
            raise NotFound("session", str(session))
        return Appended(**found)

    async def turns(
        self, who: Principal, session: UUID, after: int, limit: int
    ) -> list[StoredTurn]:
        """Turns in order, after the ordinal `after` (-1 for the first)."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("turns_list", session, after, limit)
        return [StoredTurn(**row) for row in found]


def _fields(turn: NewTurn) -> dict[str, Any]:
    fields = {
        "id": str(turn.id),
        "role": turn.role,
        "content": turn.content,
        "words": turn.words,
        "tool": turn.tool,
        "external_id": turn.external_id,
        "at": turn.at.isoformat() if turn.at else None,
    }
    return {name: value for name, value in fields.items() if value is not None}

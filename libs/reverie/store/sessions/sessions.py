"""Stores sessions and their turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import own_scopes
from reverie.domain.core.errors import Conflict, NotFound
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS, DreamThresholds
from reverie.store.db.database import Database
from reverie.store.db.idempotency import run_once


@dataclass(frozen=True)
class SessionRecord:
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
    group_name: str | None = None


@dataclass(frozen=True)
class TurnToAppend:
    """A turn about to be appended: redacted, its tool output condensed, its words prepared."""

    id: UUID
    role: str
    content: str
    words: str
    tool: str | None = None
    external_id: str | None = None
    at: datetime | None = None
    output: str | None = None


@dataclass(frozen=True)
class TurnRecord:
    """A stored turn. `output`: what a tool call gave, where it was asked for and is kept."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: datetime
    tool: str | None
    external_id: str | None
    digested: bool
    output: str | None = None


@dataclass(frozen=True)
class AppendResult:
    """The result of an append: the counts, the undigested part of the session, and why to dream
    now.

    `due`: the reason why its scope should dream; None if it need not.
    """

    accepted: int
    duplicates: int
    scope: str
    pending: int
    pending_chars: int
    due: str | None


class SessionStore:
    """Sessions of a tenant; transcripts are read by their own agent only."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def start(
        self,
        principal: Principal,
        new: UUID,
        scope: str,
        fields: Mapping[str, str | None],
        at: datetime | None = None,
    ) -> tuple[UUID, str]:
        """Starts a session, or finds the one of this external id. Returns its id and scope.

        `fields`: external_id, agent, user, project, branch, group; `at`: when it began (None: now).
        Raises `Conflict` if the external id is of a session that the key may not write to.
        """
        values = [
            fields.get(name) for name in ("external_id", "agent", "user", "project", "branch")
        ]

        async def begin() -> dict[str, str]:
            row = await connection.fetch_row(
                "session_start",
                new,
                *values,
                scope,
                list(principal.writable_patterns),
                at,
                own_scopes(fields.get("agent"), fields.get("user")),
                fields.get("group"),
            )
            if row is None:
                raise Conflict("external_id stands for a session elsewhere: choose another")
            return {"id": str(row["id"]), "scope": row["scope"]}

        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await run_once(connection, "start", begin)
        return UUID(found["id"]), found["scope"]

    async def get(self, principal: Principal, session: UUID) -> SessionRecord:
        """A session of the key's agent and scopes. Raises `NotFound`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row(
                "session_get", session, list(principal.reads), principal.agent
            )
        if row is None:
            raise NotFound("session", str(session))
        return SessionRecord(**row)

    async def page(
        self,
        principal: Principal,
        below: UUID | None,
        limit: int,
        agent: str | None = None,
        project: str | None = None,
    ) -> list[SessionRecord]:
        """Sessions newest first, below the id `below`: those that `get` would show.

        `agent` and `project` narrow them; a key of one agent sees no other's.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "session_list", list(principal.reads), principal.agent, agent, project, below, limit
            )
        return [SessionRecord(**row) for row in found]

    async def end(
        self, principal: Principal, session: UUID, summary: str | None, at: datetime | None = None
    ) -> tuple[str, int]:
        """Ends a session that `get` returned, at `at` (None: now).

        Returns its scope and the number of undigested turns.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row("session_end", session, summary, at)
        if row is None:
            raise NotFound("session", str(session))
        return row["scope"], row["pending"]

    async def append(
        self,
        principal: Principal,
        session: UUID,
        turns: Sequence[TurnToAppend],
        limits: DreamThresholds = DEFAULT_THRESHOLDS,
    ) -> AppendResult:
        """Appends turns in order; an existing external id is left out. Raises `NotFound`.

        `limits` decide when a scope dreams, unless tenant or project have set other values.
        """
        found = await self._db.call(
            "append_turns",
            principal.tenant,
            session,
            [_encode_turn(turn) for turn in turns],
            vars(limits),
            list(principal.writable_patterns),
        )
        if "problem" in found:
            raise NotFound("session", str(session))
        return AppendResult(**found)

    async def list_turns(
        self, principal: Principal, session: UUID, after: int, limit: int
    ) -> list[TurnRecord]:
        """Turns in order, after the ordinal `after` (-1 for the first)."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows("turns_list", session, after, limit)
        return [TurnRecord(**row) for row in found]

    async def list_turns_with_output(
        self, principal: Principal, session: UUID, after: int, limit: int
    ) -> list[TurnRecord]:
        """Like `list_turns`, with what tools gave."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows("turns_replay", session, after, limit)
        return [TurnRecord(**row) for row in found]


def _encode_turn(turn: TurnToAppend) -> dict[str, Any]:
    fields = {
        "id": str(turn.id),
        "role": turn.role,
        "content": turn.content,
        "words": turn.words,
        "tool": turn.tool,
        "external_id": turn.external_id,
        "at": turn.at.isoformat() if turn.at else None,
        "output": turn.output,
    }
    return {name: value for name, value in fields.items() if value is not None}

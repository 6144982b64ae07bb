"""Reads records of dreams, scopes with pending turns, and dream limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.domain.extraction.dream_log import DreamThresholds
from reverie.store.db.database import Database, update_setting

ALL_PROJECTS = "*"
"""The settings of this project apply to all scopes of the tenant."""


@dataclass(frozen=True)
class DreamRunRecord:
    """The record of one dream. `waiting`: the turns it had to digest; `seconds`: by stage."""

    id: UUID
    scope: str
    status: str
    started: datetime
    ended: datetime | None
    turns: int
    created: int
    reinforced: int
    superseded: int
    sessions: list[UUID]
    error: str | None
    reason: str | None
    attempt: int
    waiting: int
    llm_calls: int
    llm_tokens: int
    kinds: dict[str, int]
    outcomes: dict[str, int]
    seconds: dict[str, float]
    prompts: list[str]
    degraded: list[str]


@dataclass(frozen=True)
class DigestedSession:
    """The part of a session that a run digested: from `first_ordinal` to `last_ordinal`."""

    session: UUID
    turns: int
    chars: int
    first_ordinal: int
    last_ordinal: int


@dataclass(frozen=True)
class DreamDecisionRecord:
    """The decision about one item; `content` and `status` are the current ones of the memory."""

    number: int
    outcome: str
    kind: str | None
    memory: UUID | None
    session: UUID | None
    turns: list[UUID]
    reason: str
    status: str | None
    content: str | None


@dataclass(frozen=True)
class PendingScope:
    """The undigested part of a scope, and its job: waiting (none), queued, running or parked.

    `new_turns` were added since a worker last looked. While a `run` is at work, it has digested
    `digested` of its `waiting` turns.
    """

    scope: str
    turns: int
    segments: int
    chars: int
    sessions: int
    new_turns: int
    since: datetime | None
    state: str
    reason: str | None
    requested_at: datetime | None
    attempts: int
    error: str | None
    run: UUID | None
    digested: int | None
    waiting: int | None


class DreamRunStore:
    """Reads dream runs within one tenant and the scopes that a key may read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(
        self, principal: Principal, run: UUID
    ) -> tuple[DreamRunRecord, list[DigestedSession]]:
        """A run, and what went into it. Raises `NotFound`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row(
                "dream_runs", list(principal.reads), None, None, 1, run
            )
            if row is None:
                raise NotFound("dream", str(run))
            session_rows = await connection.fetch_rows(
                "dream_digested_sessions", run, row["sessions"]
            )
        return DreamRunRecord(**row), [
            DigestedSession(**session_row) for session_row in session_rows
        ]

    async def list_runs(
        self, principal: Principal, below: UUID | None, scope: str | None, limit: int
    ) -> list[DreamRunRecord]:
        """Runs over readable scopes, newest first below the id `below`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "dream_runs", list(principal.reads), below, scope, limit, None
            )
        return [DreamRunRecord(**row) for row in found]

    async def delete_old_decisions(self, age_seconds: float) -> int:
        """Deletes why runs so long ago decided what they did; the runs stay."""
        age = timedelta(seconds=age_seconds)
        return int(await self._db.call("delete_old_rows", "dream_decision", age))

    async def get_tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None if there is no tenant with that number."""
        return await self._db.get_tenant_name(tenant)

    async def list_decisions(
        self, principal: Principal, run: UUID, after: int, limit: int
    ) -> list[DreamDecisionRecord]:
        """Decisions of a run in order after number `after`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "dream_decisions", run, list(principal.reads), after, limit
            )
        return [DreamDecisionRecord(**row) for row in found]

    async def list_pending(
        self, principal: Principal, scope: str | None, after: str | None, limit: int
    ) -> list[PendingScope]:
        """Readable scopes with something undigested or asked for, by name above `after`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "dream_pending_scopes", list(principal.reads), scope, after, limit
            )
        return [PendingScope(**row) for row in found]


class DreamLimitStore:
    """When scopes dream, as a tenant (`ALL_PROJECTS`) or a project of it has set."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load(self, tenant: int, project: str) -> dict[str, float]:
        """Loads the settings of a project; omits unset ones."""
        async with self._db.tenant_transaction(tenant) as connection:
            return await connection.fetch_value("setting_get", project, "dream") or {}

    async def update(
        self, tenant: int, project: str, changes: Mapping[str, float] | None, base: DreamThresholds
    ) -> dict[str, float]:
        """Updates some settings; None resets all. Raises `InvalidInput` naming the field."""
        async with self._db.tenant_transaction(tenant) as connection:
            values = await update_setting(connection, project, "dream", changes)
            base.with_changes(values)
        return values


def combine_limits(
    base: DreamThresholds, settings: Sequence[Mapping[str, float]]
) -> DreamThresholds:
    """Combines limits; later settings override earlier ones."""
    limits = base
    for overrides in settings:
        limits = limits.with_changes(overrides)
    return limits

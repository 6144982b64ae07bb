"""What dreams did and why, what waits for one, and the limits that tenants and projects set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.dreaming import Limits
from reverie.domain.errors import NotFound
from reverie.store.database import Database

TENANT_WIDE = "*"
"""What is set for this project holds for all scopes of the tenant."""


@dataclass(frozen=True)
class Run:
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
class TakenIn:
    """What of a session a run digested: ordinals from `first` to `last`."""

    session: UUID
    turns: int
    chars: int
    first: int
    last: int


@dataclass(frozen=True)
class Decided:
    """What became of one thing; `content` and `status` are those of the memory now."""

    no: int
    outcome: str
    kind: str | None
    memory: UUID | None
    session: UUID | None
    turns: list[UUID]
    why: str
    status: str | None
    content: str | None


@dataclass(frozen=True)
class Waiting:
    """What of a scope is undigested, and what is asked for: waiting (nothing), queued, running or
    parked.

    `fresh_turns` came since a worker last looked; `done` of the `waiting` ones of `run` are dreamt.
    """

    scope: str
    turns: int
    segments: int
    chars: int
    sessions: int
    fresh_turns: int
    since: datetime | None
    state: str
    reason: str | None
    asked: datetime | None
    attempts: int
    error: str | None
    run: UUID | None
    done: int | None
    waiting: int | None


class DreamRuns:
    """Reads for the doors, each within one tenant and what a key may read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def run(self, who: Principal, run: UUID) -> tuple[Run, list[TakenIn]]:
        """A run, and what went into it. Raises `NotFound`."""
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("dream_run", run, list(who.reads))
            if row is None:
                raise NotFound("dream", str(run))
            taken = await tenant.rows("dream_taken_in", run, row["sessions"])
        return Run(**row), [TakenIn(**one) for one in taken]

    async def decisions(self, who: Principal, run: UUID, after: int, limit: int) -> list[Decided]:
        """Decisions of a run in order after number `after`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("dream_decisions", run, list(who.reads), after, limit)
        return [Decided(**row) for row in found]

    async def waiting(
        self, who: Principal, scope: str | None, after: str | None, limit: int
    ) -> list[Waiting]:
        """Readable scopes with something undigested or asked for, by name above `after`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("dreams_waiting", list(who.reads), scope, after, limit)
        return [Waiting(**row) for row in found]


class DreamLimits:
    """When scopes dream, as a tenant (`TENANT_WIDE`) or a project of it has set."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def read(self, tenant: int, project: str) -> dict[str, float]:
        """What is set for a project; what is not is left out."""
        async with self._db.tenant(tenant) as one:
            return await one.value("dream_limits_set", project) or {}

    async def change(
        self, tenant: int, project: str, asked: Mapping[str, float] | None, base: Limits
    ) -> dict[str, float]:
        """Sets some anew; None takes all back. Raises `Invalid` naming what does not fit."""
        async with self._db.tenant(tenant) as one:
            await one.rows("settings_lock")
            if asked is None:
                await one.value("dream_limits_reset", project)
                return {}
            kept: dict[str, Any] = {**(await one.value("dream_limits_set", project) or {}), **asked}
            base.changed(kept)
            await one.value("dream_limits_put", project, kept)
        return kept


def in_force(base: Limits, settings: Sequence[Mapping[str, float]]) -> Limits:
    """The limits that hold where later settings go over earlier ones."""
    made = base
    for one in settings:
        made = made.changed(one)
    return made

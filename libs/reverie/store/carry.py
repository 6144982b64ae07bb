"""Everything of a tenant as lines, out and in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from reverie.domain.access import Principal
from reverie.store.database import Database, Tenant

PAGE = 500
"""Rows of a page on the way out, and of a batch on the way in."""

Rows = Sequence[Mapping[str, Any]]
Pager = Callable[[Tenant, "Reach", Sequence[object]], Awaitable[list[asyncpg.Record]]]


@dataclass(frozen=True)
class Reach:
    """What an export reaches: grants, scope patterns within them, whose transcripts (None: any)."""

    reads: list[str]
    within: list[str]
    agent: str | None


@dataclass(frozen=True)
class Landed:
    """What became of one line: created, updated, skipped or refused, and as which memory."""

    outcome: str
    id: UUID | None = None
    reason: str = ""


async def _memories(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows("carry_out_memory", reach.reads, reach.within, after, PAGE)


async def _versions(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at or (None, None)
    return await tenant.rows("carry_out_memory_version", reach.reads, reach.within, *after, PAGE)


async def _edges(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows("carry_out_edge", reach.reads, reach.within, after, PAGE)


async def _anchors(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows("carry_out_anchor", reach.reads, reach.within, after, PAGE)


async def _summaries(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows("carry_out_summary", reach.reads, reach.within, after, PAGE)


async def _sessions(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows(
        "carry_out_session", reach.reads, reach.within, after, PAGE, reach.agent
    )


async def _turns(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at or (None, None)
    return await tenant.rows("carry_out_turn", reach.reads, reach.within, *after, PAGE, reach.agent)


async def _names(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at[0] if at else None
    return await tenant.rows("carry_out_name", reach.reads, reach.within, after, PAGE)


async def _settings(tenant: Tenant, reach: Reach, at: Sequence[object]) -> list[asyncpg.Record]:
    after = at or (None, None)
    return await tenant.rows("carry_out_setting", reach.reads, reach.within, *after, PAGE)


_PAGERS: tuple[Pager, ...] = (
    _memories,
    _versions,
    _edges,
    _anchors,
    _summaries,
    _names,
    _settings,
    _sessions,
    _turns,
)


class Carry:
    """The doors of the store for whole files."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def lines(self, who: Principal, within: Sequence[str]) -> AsyncIterator[list[str]]:
        """All records that the key may read, as JSON, in pages: one moment, one order."""
        reach = Reach(list(who.reads), list(within), who.agent)
        async with self._db.snapshot(who.tenant) as tenant:
            for pager in _PAGERS:
                at: Sequence[object] = ()
                while page := await pager(tenant, reach, at):
                    yield [row["line"] for row in page]
                    *at, _ = page[-1]

    def landing(self, who: Principal, strategy: str, dry_run: bool) -> Landing:
        """Where the records of one file land. A dry run is undone when it ends."""
        return Landing(self._db, who, strategy, dry_run)


class Landing:
    """Writes batches of records; each batch by itself, or for a dry run all within one
    transaction that is undone."""

    def __init__(self, database: Database, who: Principal, strategy: str, dry_run: bool) -> None:
        self._db = database
        self._who = who
        self._strategy = strategy
        self._dry = dry_run
        self._all: Any = None
        self._tenant: Tenant | None = None

    async def __aenter__(self) -> Landing:
        if self._dry:
            self._all = self._db.tenant(self._who.tenant)
            self._tenant = await self._all.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._all is not None:
            with suppress(_Undone):
                await self._all.__aexit__(_Undone, _Undone(), None)

    async def land(self, kind: str, rows: Rows, headers: Mapping[str, str]) -> list[Landed]:
        """What became of each record of one type, in order."""
        if self._tenant is not None:
            return await self._whole_or_each(self._tenant, kind, rows, headers)
        async with self._db.tenant(self._who.tenant) as tenant:
            return await self._whole_or_each(tenant, kind, rows, headers)

    async def succeed(self, became: Mapping[str, str]) -> None:
        """Tells what points to successors which ids those got here."""
        if self._tenant is not None or not became:
            return
        async with self._db.tenant(self._who.tenant) as tenant:
            await tenant.value("carry_in_successors", dict(became))

    async def _whole_or_each(
        self, tenant: Tenant, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[Landed]:
        """A record that the database cannot take makes the batch land one by one."""
        try:
            async with tenant.attempt():
                return [_landed(row[0]) for row in await self._put(tenant, kind, rows, headers)]
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
            if len(rows) == 1:
                return [Landed("refused", None, "a value that the store cannot hold")]
        return [(await self._whole_or_each(tenant, kind, [row], headers))[0] for row in rows]

    async def _put(
        self, tenant: Tenant, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[asyncpg.Record]:
        who, writes = self._who, list(self._who.writable)
        reads = list(who.reads)
        match kind:
            case "memory":
                scopes = [row["scope"] for row in rows if "scope" in row]
                await tenant.value("summaries_unseen", scopes)
                return await tenant.rows(
                    "carry_in_memory",
                    who.tenant_name,
                    rows,
                    self._strategy,
                    who.actor,
                    writes,
                    dict(headers),
                )
            case "edge":
                return await tenant.rows("carry_in_edge", rows, self._strategy, reads, writes)
            case "summary":
                return await tenant.rows("carry_in_summary", rows, self._strategy)
            case "scope_name":
                return await tenant.rows("carry_in_name", rows)
            case "project_setting":
                return await tenant.rows("carry_in_setting", rows, self._strategy)
            case "session":
                return await tenant.rows("carry_in_session", rows)
            case "turn":
                return await tenant.rows("carry_in_turn", rows, who.agent, writes)
            case _:
                return await tenant.rows("carry_in_belongings", kind, rows, writes)


class _Undone(Exception):
    """A dry run ends."""


def _landed(answer: Mapping[str, Any]) -> Landed:
    found = answer.get("id")
    return Landed(answer["outcome"], UUID(found) if found else None, answer.get("reason", ""))

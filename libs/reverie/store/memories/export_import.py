"""Exports all records of a tenant as JSON lines and imports such a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.store.db.database import Database, TenantConnection

PAGE_SIZE = 500
"""Rows of a page on the way out, and of a batch on the way in."""

Rows = Sequence[Mapping[str, Any]]
Pager = Callable[
    [TenantConnection, "ExportScope", Sequence[object]], Awaitable[list[asyncpg.Record]]
]


@dataclass(frozen=True)
class ExportScope:
    """What an export reaches: grants, scope patterns within them, whose transcripts (None: any)."""

    reads: list[str]
    patterns: list[str]
    agent: str | None


@dataclass(frozen=True)
class ImportOutcome:
    """What became of one line: created, updated, skipped or refused, and as which memory."""

    outcome: str
    id: UUID | None = None
    reason: str = ""


async def _export_memories(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows(
        "export_memory", scope.reads, scope.patterns, after, PAGE_SIZE
    )


async def _export_versions(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position or (None, None)
    return await connection.fetch_rows(
        "export_memory_version", scope.reads, scope.patterns, *after, PAGE_SIZE
    )


async def _export_edges(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows("export_edge", scope.reads, scope.patterns, after, PAGE_SIZE)


async def _export_anchors(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows(
        "export_anchor", scope.reads, scope.patterns, after, PAGE_SIZE
    )


async def _export_summaries(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows(
        "export_summary", scope.reads, scope.patterns, after, PAGE_SIZE
    )


async def _export_sessions(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows(
        "export_session", scope.reads, scope.patterns, after, PAGE_SIZE, scope.agent
    )


async def _export_turns(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position or (None, None)
    return await connection.fetch_rows(
        "export_turn", scope.reads, scope.patterns, *after, PAGE_SIZE, scope.agent
    )


async def _export_names(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position[0] if position else None
    return await connection.fetch_rows(
        "export_scope_name", scope.reads, scope.patterns, after, PAGE_SIZE
    )


async def _export_settings(
    connection: TenantConnection, scope: ExportScope, position: Sequence[object]
) -> list[asyncpg.Record]:
    after = position or (None, None)
    return await connection.fetch_rows(
        "export_project_setting", scope.reads, scope.patterns, *after, PAGE_SIZE
    )


_PAGERS: tuple[Pager, ...] = (
    _export_memories,
    _export_versions,
    _export_edges,
    _export_anchors,
    _export_summaries,
    _export_names,
    _export_settings,
    _export_sessions,
    _export_turns,
)


class ExportImportStore:
    """The doors of the store for whole files."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def export_lines(
        self, principal: Principal, patterns: Sequence[str]
    ) -> AsyncIterator[list[str]]:
        """All records that the key may read, as JSON, in pages: one moment, one order."""
        scope = ExportScope(list(principal.reads), list(patterns), principal.agent)
        async with self._db.export_snapshot(principal.tenant) as connection:
            for pager in _PAGERS:
                position: Sequence[object] = ()
                while page := await pager(connection, scope, position):
                    yield [row["line"] for row in page]
                    *position, _ = page[-1]

    def open_import(self, principal: Principal, strategy: str, dry_run: bool) -> ImportSession:
        """Where the records of one file land. A dry run is undone when it ends."""
        return ImportSession(self._db, principal, strategy, dry_run)


class ImportSession:
    """Writes batches of records; each batch by itself, or for a dry run all within one
    transaction that is undone."""

    def __init__(
        self, database: Database, principal: Principal, strategy: str, dry_run: bool
    ) -> None:
        self._db = database
        self._principal = principal
        self._strategy = strategy
        self._dry_run = dry_run
        self._transaction: Any = None
        self._connection: TenantConnection | None = None

    async def __aenter__(self) -> ImportSession:
        if self._dry_run:
            self._transaction = self._db.tenant_transaction(self._principal.tenant)
            self._connection = await self._transaction.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._transaction is not None:
            with suppress(_DryRunRollback):
                await self._transaction.__aexit__(_DryRunRollback, _DryRunRollback(), None)

    async def write_batch(
        self, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[ImportOutcome]:
        """What became of each record of one type, in order."""
        if self._connection is not None:
            return await self._write_all_or_each(self._connection, kind, rows, headers)
        async with self._db.tenant_transaction(self._principal.tenant) as connection:
            return await self._write_all_or_each(connection, kind, rows, headers)

    async def remap_successors(self, new_ids: Mapping[str, str]) -> None:
        """Tells what points to successors which ids those got here."""
        if self._connection is not None or not new_ids:
            return
        async with self._db.tenant_transaction(self._principal.tenant) as connection:
            await connection.fetch_value("import_successors", dict(new_ids))

    async def _write_all_or_each(
        self, connection: TenantConnection, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[ImportOutcome]:
        """A record that the database cannot take makes the batch land one by one."""
        try:
            async with connection.savepoint():
                return [
                    _parse_outcome(row[0])
                    for row in await self._write_rows(connection, kind, rows, headers)
                ]
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
            if len(rows) == 1:
                return [ImportOutcome("refused", None, "a value that the store cannot hold")]
        return [
            (await self._write_all_or_each(connection, kind, [row], headers))[0] for row in rows
        ]

    async def _write_rows(
        self, connection: TenantConnection, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[asyncpg.Record]:
        principal, writes = self._principal, list(self._principal.writable_patterns)
        reads = list(principal.reads)
        match kind:
            case "memory":
                scopes = [row["scope"] for row in rows if "scope" in row]
                await connection.fetch_value("summaries_reset_seen", scopes)
                return await connection.fetch_rows(
                    "import_memory",
                    principal.tenant_name,
                    rows,
                    self._strategy,
                    principal.actor,
                    writes,
                    dict(headers),
                )
            case "edge":
                return await connection.fetch_rows(
                    "import_edge", rows, self._strategy, reads, writes
                )
            case "summary":
                return await connection.fetch_rows("import_summary", rows, self._strategy)
            case "scope_name":
                return await connection.fetch_rows("import_scope_name", rows)
            case "project_setting":
                return await connection.fetch_rows("import_project_setting", rows, self._strategy)
            case "session":
                return await connection.fetch_rows("import_session", rows)
            case "turn":
                return await connection.fetch_rows("import_turn", rows, principal.agent, writes)
            case _:
                return await connection.fetch_rows("import_dependent_rows", kind, rows, writes)


class _DryRunRollback(Exception):
    """A dry run ends."""


def _parse_outcome(answer: Mapping[str, Any]) -> ImportOutcome:
    memory_id = answer.get("id")
    return ImportOutcome(
        answer["outcome"], UUID(memory_id) if memory_id else None, answer.get("reason", "")
    )

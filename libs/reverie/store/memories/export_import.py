"""Exports all records of a tenant as JSON lines or by scope, and imports such a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import format_scope
from reverie.domain.core.memory import Memory
from reverie.domain.formats.obsidian import NoteLink
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.memories.memories import load_scope_names
from reverie.store.sessions.summaries import load_current_summaries, remove_outdated_lines

PAGE_SIZE = 500
"""Rows of a page on the way out, and of a batch on the way in."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ImportOutcome:
    """The result of one line: created, updated, skipped or refused, and the memory it became."""

    outcome: str
    id: UUID | None = None
    reason: str = ""


EXPORT_QUERIES = (
    "export_memory",
    "export_memory_version",
    "export_edge",
    "export_anchor",
    "export_picture",
    "export_summary",
    "export_scope_name",
    "export_project_setting",
    "export_session",
    "export_turn",
)
"""The queries of an export, in this order; each returns the key of a row before its line."""
TRANSCRIPT_QUERIES = ("export_session", "export_turn")
"""Those that a key bound to an agent reads for that agent only."""


class ExportImportStore:
    """Exports and imports of a tenant, page by page."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def export_lines(
        self, principal: Principal, patterns: Sequence[str]
    ) -> AsyncIterator[list[str]]:
        """All records that the key may read, as JSON, in pages: one moment, one order."""
        scope = (list(principal.reads), list(patterns), PAGE_SIZE)
        async with self._db.export_snapshot(principal.tenant) as connection:
            for query in EXPORT_QUERIES:
                agent = (principal.agent,) if query in TRANSCRIPT_QUERIES else ()
                last_key: list[str] | None = None
                while page := await connection.fetch_rows(query, *scope, last_key, *agent):
                    if query == "export_summary":
                        yield await _render_summary_lines(connection, page)
                    else:
                        yield [row["line"] for row in page]
                    last_key = [str(part) for part in tuple(page[-1])[:-1]]

    def open_import(self, principal: Principal, strategy: str, dry_run: bool) -> ImportSession:
        """Opens an import of one file. A dry run is rolled back at its end."""
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
        """Writes records of one type; returns the result of each, in order."""
        if self._connection is not None:
            return await self._write_all_or_each(self._connection, kind, rows, headers)
        async with self._db.tenant_transaction(self._principal.tenant) as connection:
            return await self._write_all_or_each(connection, kind, rows, headers)

    async def finish(self, new_ids: Mapping[str, str]) -> None:
        """Replaces references to successors by the ids that those received here, and limits what
        sessions say is new to the turns that came with them."""
        if self._connection is not None:
            return
        async with self._db.tenant_transaction(self._principal.tenant) as connection:
            await connection.fetch_value("import_successors", dict(new_ids))
            await connection.fetch_value("import_limit_new_turns")

    async def _write_all_or_each(
        self, connection: TenantConnection, kind: str, rows: Rows, headers: Mapping[str, str]
    ) -> list[ImportOutcome]:
        """Writes the batch; if the database rejects a record, writes them one by one."""
        try:
            async with connection.savepoint():
                return [
                    _parse_outcome(row[0])
                    for row in await self._write_rows(connection, kind, rows, headers)
                ]
        except _REFUSED_BY_DATABASE:
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
                    "import_memories",
                    principal.tenant_name,
                    rows,
                    self._strategy,
                    principal.actor,
                    principal.agent,
                    writes,
                    dict(headers),
                )
            case "edge":
                return await connection.fetch_rows(
                    "import_edges", rows, self._strategy, reads, writes
                )
            case "turn":
                return await connection.fetch_rows("import_turns", rows, principal.agent, writes)
            case "memory_version" | "anchor" | "picture":
                return await connection.fetch_rows("import_dependent_rows", kind, rows, writes)
            case _:
                return await connection.fetch_rows("import_rows", kind, rows, self._strategy)


_REFUSED_BY_DATABASE = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
)


class _DryRunRollback(Exception):
    """A dry run ends."""


def _parse_outcome(answer: Mapping[str, Any]) -> ImportOutcome:
    memory_id = answer.get("id")
    return ImportOutcome(
        answer["outcome"], UUID(memory_id) if memory_id else None, answer.get("reason", "")
    )


@dataclass(frozen=True)
class ScopeNotes:
    """The active memories of one scope, oldest first, with their links if requested."""

    scope: str
    summary: str | None
    memories: list[Memory]
    links: dict[UUID, list[NoteLink]]
    display_name: str
    """The scope as people read it."""


class ScopeNoteStore:
    """Reads scopes whole, one at a time."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def iterate_scopes(
        self, principal: Principal, patterns: Sequence[str], with_links: bool = False
    ) -> AsyncIterator[ScopeNotes]:
        """Each scope that the key may read, in order, as of one moment."""
        async with self._db.export_snapshot(principal.tenant) as connection:
            memories: list[Memory] = []
            async for memory in _iterate_memories(connection, principal, patterns):
                if memories and memory.scope != memories[0].scope:
                    yield await _build_scope_notes(
                        connection, principal, patterns, memories, with_links
                    )
                    memories = []
                memories.append(memory)
            if memories:
                yield await _build_scope_notes(
                    connection, principal, patterns, memories, with_links
                )

    async def load_scope(self, principal: Principal, scope: str) -> tuple[list[Memory], str | None]:
        """The active memories of a scope and its summary."""
        async with self._db.export_snapshot(principal.tenant) as connection:
            memories = [
                memory async for memory in _iterate_memories(connection, principal, [scope])
            ]
            return memories, await _load_summary(connection, scope, list(principal.reads))

    async def find_forgotten(
        self, principal: Principal, scope: str, short: Sequence[str]
    ) -> set[str]:
        """Which of the short ids belong to forgotten memories of the scope."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows("scope_note_forgotten_ids", scope, list(short))
        return {row["short"] for row in found}


async def _iterate_memories(
    connection: TenantConnection, principal: Principal, patterns: Sequence[str]
) -> AsyncIterator[Memory]:
    position: tuple[str | None, UUID | None] = (None, None)
    while page := await connection.fetch_rows(
        "scope_note_memories", list(principal.reads), list(patterns), *position, PAGE_SIZE
    ):
        for row in page:
            yield row_mapping.parse_memory(row)
        position = (page[-1]["scope"], page[-1]["id"])


async def _build_scope_notes(
    connection: TenantConnection,
    principal: Principal,
    patterns: Sequence[str],
    memories: list[Memory],
    with_links: bool,
) -> ScopeNotes:
    scope, reads = memories[0].scope, list(principal.reads)
    summary = await _load_summary(connection, scope, reads)
    links: dict[UUID, list[NoteLink]] = {}
    if with_links:
        links = await _load_links(
            connection, reads, list(patterns), [memory.id for memory in memories]
        )
    names = await load_scope_names(connection, reads, [scope])
    return ScopeNotes(scope, summary, memories, links, format_scope(scope, names))


async def _render_summary_lines(
    connection: TenantConnection, page: Sequence[asyncpg.Record]
) -> list[str]:
    """The lines of summaries without what was forgotten or edited; empty ones are left out."""
    outdated = await connection.fetch_rows("summary_outdated_lines", [row["scope"] for row in page])
    summaries = [json.loads(row["line"]) for row in page]
    contents = remove_outdated_lines(summaries, outdated)
    return [
        json.dumps({**summary, "content": contents[summary["scope"]]}, ensure_ascii=False)
        for summary in summaries
        if contents[summary["scope"]]
    ]


async def _load_summary(connection: TenantConnection, scope: str, reads: list[str]) -> str | None:
    """Loads the text of the scope's current summary."""
    content = await connection.fetch_value("scope_note_summary", scope, reads)
    if not content:
        return None
    summaries = [{"scope": scope, "content": content}]
    return (await load_current_summaries(connection, summaries, [scope])).get(scope, "")


async def _load_links(
    connection: TenantConnection, reads: list[str], patterns: list[str], ids: list[UUID]
) -> dict[UUID, list[NoteLink]]:
    edges = await connection.fetch_rows("scope_note_edges", ids, reads, patterns)
    target_rows = await connection.fetch_rows(
        "memories_by_ids", list({row["dst"] for row in edges}), reads
    )
    targets = {row["id"]: row_mapping.parse_memory(row) for row in target_rows}
    links: dict[UUID, list[NoteLink]] = {}
    for row in edges:
        if row["dst"] in targets:
            links.setdefault(row["src"], []).append(NoteLink(row["kind"], targets[row["dst"]]))
    return links

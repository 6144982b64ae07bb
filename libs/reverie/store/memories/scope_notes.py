"""Reads the memories, links and summary of each scope for Markdown exports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import format_scope
from reverie.domain.context.scope_summary import remove_lines
from reverie.domain.core.memory import Memory
from reverie.domain.formats.obsidian import NoteLink
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.memories.export_import import PAGE_SIZE
from reverie.store.memories.memories import load_scope_names


@dataclass(frozen=True)
class ScopeNotes:
    """The active memories of one scope, oldest first, with their links where they were asked."""

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


async def _load_summary(connection: TenantConnection, scope: str, reads: list[str]) -> str | None:
    """What the summary of a scope says that stands."""
    summary = await connection.fetch_value("scope_note_summary", scope, reads)
    outdated = await connection.fetch_rows("summary_outdated_lines", [scope]) if summary else []
    return remove_lines(summary, [row["content"] for row in outdated]) if summary else None


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

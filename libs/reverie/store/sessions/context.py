"""Reads the memories, summaries and budgets for an agent's context block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.domain.context import open_files
from reverie.domain.context.budgets import DEFAULT_BUDGETS, ContextBudgets
from reverie.domain.context.line_candidates import COMMAND_TAGS, ContextInput
from reverie.domain.context.next_files import CommittedFile
from reverie.domain.context.open_files import FileRelatedMemory
from reverie.domain.context.text_rendering import render_staleness_warning
from reverie.domain.core.kinds import KIND_POLICIES, Kind
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection, update_setting
from reverie.store.sessions.summaries import load_current_summaries

INJECTED_KINDS = tuple(kind.value for kind, how in KIND_POLICIES.items() if how.in_session_context)

CENTRAL_MEMORY_LIMIT = 5
"""Number of memories shown because of their rank in the graph, of any kind."""

MEMORIES_PER_KIND = 50
"""Number of memories read of each kind, the newest."""

RECENT_CHANGES, RECENT_FILES = 200, 3000
"""Git changes, and files of them, from which the next files are predicted."""

FILE_MEMORY_LIMIT = 20
"""Number of memories shown for open files."""

CAUSE_LIMIT = 3
"""Number of files listed whose changes made memories doubtful."""

DONE_LIMIT = 5
"""Number of tasks listed that were done since the last session."""

_SETTING = "context"
"""Under which name a project sets its budgets."""


class ContextStore:
    """Reads all that a context block may show, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load(
        self,
        principal: Principal,
        scopes: Sequence[str],
        project: str | None = None,
        files: Sequence[str] = (),
        per_kind: int = MEMORIES_PER_KIND,
    ) -> ContextInput:
        """Loads the candidates for a session's context, and the budgets of the project.

        Pinned and injected memories, `per_kind` of a kind, stale ones, those of the open `files`,
        summaries and the latest session.
        """
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "context_memories",
                list(scopes),
                list(INJECTED_KINDS),
                per_kind + 1,
                CENTRAL_MEMORY_LIMIT,
                list(COMMAND_TAGS),
            )
            stale = await connection.fetch_rows("context_stale_memories", list(scopes), 10)
            stale_ids = [row["id"] for row in stale]
            causes = (
                await connection.fetch_rows("context_stale_causes", stale_ids, CAUSE_LIMIT)
                if stale_ids
                else []
            )
            sessions = await connection.fetch_rows("context_sessions", list(scopes), 1)
            done = await connection.fetch_rows("context_done_tasks", list(scopes), DONE_LIMIT)
            summaries = await connection.fetch_rows("summary_list", list(scopes), None, None, None)
            shown = await load_current_summaries(connection, summaries, scopes) if summaries else {}
            file_memories = await _find_file_memories(connection, scopes, project, files)
            task_ids = [r["id"] for r in (*found, *stale, *done) if r["kind"] == Kind.TASK.value]
            task_ids += [item.memory.id for item in file_memories if item.memory.kind is Kind.TASK]
            tasks = await connection.fetch_rows("task_states", task_ids) if task_ids else []
            budgets = await _load_budgets(connection, project)
        memories = tuple(row_mapping.parse_memory(row) for row in found)
        return ContextInput(
            memories=memories,
            stale=tuple(row_mapping.parse_memory(row) for row in stale),
            sessions=tuple(row_mapping.parse_memory(row) for row in sessions),
            summaries=tuple(shown.items()),
            task_states={row["memory"]: row["state"] for row in tasks},
            central_ids=frozenset(row["id"] for row in found if row["leaned"]),
            file_related=(
                *file_memories,
                *open_files.find_file_conventions(memories, open_files.normalize_paths(files)),
            ),
            has_more=max(Counter(item.kind for item in memories).values(), default=0) > per_kind,
            budgets=budgets,
            stale_causes=tuple(_format_cause(row) for row in causes),
            done_tasks=tuple(row_mapping.parse_memory(row) for row in done),
            now=datetime.now(UTC),
        )

    async def find_file_memories(
        self, principal: Principal, scopes: Sequence[str], project: str | None, files: Sequence[str]
    ) -> list[FileRelatedMemory]:
        """Returns memories that touch the open `files` or their folders, the nearest first.

        Of one project, or of all that the scopes cover.
        """
        async with self._db.snapshot(principal.tenant) as connection:
            return await _find_file_memories(connection, scopes, project, files)

    async def load_recent_commits(
        self, principal: Principal, project: str, branch: str | None
    ) -> list[list[CommittedFile]]:
        """The files of the latest commits of a project, newest first.

        Of its default branch, and of one `branch`.
        """
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "recent_changed_files", project, branch, RECENT_CHANGES, RECENT_FILES
            )
        return [
            [
                CommittedFile(row["path"], row["old_path"], row["status"] == "deleted")
                for row in {row["path"]: row for row in rows}.values()
            ]
            for _, rows in groupby(found, key=itemgetter("commit"))
        ]

    async def load_budgets(self, principal: Principal, project: str) -> ContextBudgets:
        """Returns the budgets of a project; defaults for those not set."""
        async with self._db.snapshot(principal.tenant) as connection:
            return await _load_budgets(connection, project)

    async def set_budgets(
        self, principal: Principal, project: str, changes: dict[str, int] | None
    ) -> ContextBudgets:
        """Changes some of the budgets of a project; None resets all to the default.

        Raises `InvalidInput` naming the field.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            values = await update_setting(connection, project, _SETTING, changes)
            return DEFAULT_BUDGETS.with_changes(values)


def _format_cause(row: asyncpg.Record) -> str:
    kinds = {Kind(kind): count for kind, count in row["kinds"].items()}
    return render_staleness_warning(row["path"], row["ago"], kinds)


async def _load_budgets(connection: TenantConnection, project: str | None) -> ContextBudgets:
    values = await connection.fetch_value("setting_get", project, _SETTING) if project else None
    return DEFAULT_BUDGETS.with_changes(values) if values else DEFAULT_BUDGETS


async def _find_file_memories(
    connection: TenantConnection, scopes: Sequence[str], project: str | None, files: Sequence[str]
) -> list[FileRelatedMemory]:
    paths = open_files.normalize_paths(files)
    if not paths:
        return []
    found = await connection.fetch_rows(
        "context_file_memories",
        list(scopes),
        open_files.list_file_names(paths),
        open_files.list_folder_suffixes(paths),
        project,
        4 * FILE_MEMORY_LIMIT,
    )
    reasons: dict[UUID, str] = {}
    for row in found:
        reason = open_files.explain_relevance(row["path"], paths)
        if reason and len(reasons) < FILE_MEMORY_LIMIT:
            reasons.setdefault(row["id"], reason)
    memory_rows = (
        await connection.fetch_rows("memories_by_ids", list(reasons), list(scopes))
        if reasons
        else []
    )
    memories = {row["id"]: row_mapping.parse_memory(row) for row in memory_rows}
    return [
        FileRelatedMemory(memories[memory_id], reason)
        for memory_id, reason in reasons.items()
        if memory_id in memories
    ]

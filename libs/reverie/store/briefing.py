"""What an agent should know before it starts: the rows behind the context block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import asyncpg

from reverie.domain import open_files
from reverie.domain.access import Principal
from reverie.domain.briefing import COMMAND_TAGS, Briefing
from reverie.domain.budgets import DEFAULT, Budgets
from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.open_files import Near
from reverie.domain.telling import warning
from reverie.store import rows
from reverie.store.database import Database, Tenant
from reverie.store.summaries import standing

INJECTED = tuple(kind.value for kind, how in TREATMENT.items() if how.injected)

LEANED_ON = 5
"""How many memories are shown because much of the graph leans on them, whatever their kind."""

OF_A_KIND = 50
"""How many memories of a kind are read, the newest."""

NEAR_FILES = 20
"""How many memories the open files may call for."""


CAUSES = 3
"""How many files are named that made memories doubtful."""


class Briefings:
    """Reads all that a context block may show, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def read(
        self,
        who: Principal,
        scopes: Sequence[str],
        project: str | None = None,
        files: Sequence[str] = (),
        most: int = OF_A_KIND,
    ) -> Briefing:
        """What may be shown, and the budgets that the project has set.

        Pinned and injected memories, `most` of a kind, stale ones, what the open `files` call
        for, summaries and the latest session.
        """
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows(
                "briefing_memories",
                list(scopes),
                list(INJECTED),
                most + 1,
                LEANED_ON,
                list(COMMAND_TAGS),
            )
            stale = await tenant.rows("briefing_stale", list(scopes), 10)
            doubted = [row["id"] for row in stale]
            causes = await tenant.rows("briefing_causes", doubted, CAUSES) if doubted else []
            sessions = await tenant.rows("briefing_sessions", list(scopes), 1)
            summaries = await tenant.rows("summaries", list(scopes))
            gone = await tenant.rows("summaries_outlived", list(scopes)) if summaries else []
            near = await _near(tenant, scopes, project, files)
            shown = [r["id"] for r in (*found, *stale) if r["kind"] == Kind.TASK.value]
            shown += [one.memory.id for one in near if one.memory.kind is Kind.TASK]
            tasks = await tenant.rows("tasks_among", shown) if shown else []
            budgets = await _budgets(tenant, project)
        memories = tuple(rows.memory(row) for row in found)
        return Briefing(
            memories=memories,
            stale=tuple(rows.memory(row) for row in stale),
            sessions=tuple(rows.memory(row) for row in sessions),
            summaries=standing(summaries, gone),
            tasks={row["memory"]: row["state"] for row in tasks},
            leaned=frozenset(row["id"] for row in found if row["leaned"]),
            near=(*near, *open_files.conventions_for(memories, open_files.clean(files))),
            more=max(Counter(one.kind for one in memories).values(), default=0) > most,
            budgets=budgets,
            causes=tuple(_cause(row) for row in causes),
        )

    async def near(
        self, who: Principal, scopes: Sequence[str], project: str | None, files: Sequence[str]
    ) -> list[Near]:
        """What the open `files` call for: memories that touch them or their folders, the nearest
        first. Of one project, or of all that the scopes cover."""
        async with self._db.looking(who.tenant) as tenant:
            return await _near(tenant, scopes, project, files)

    async def budgets(self, who: Principal, project: str) -> Budgets:
        """The budgets of a project; what it has not set is as the default says."""
        async with self._db.looking(who.tenant) as tenant:
            return await _budgets(tenant, project)

    async def set_budgets(
        self, who: Principal, project: str, asked: dict[str, int] | None
    ) -> Budgets:
        """Changes some of the budgets of a project; None takes all back to the default.

        Raises `Invalid` naming what does not fit.
        """
        async with self._db.tenant(who.tenant) as tenant:
            await tenant.rows("settings_lock")
            if asked is None:
                await tenant.value("context_budgets_reset", project)
                return DEFAULT
            kept = {**(await tenant.value("context_budgets", project) or {}), **asked}
            made = DEFAULT.changed(kept)
            await tenant.value("context_budgets_set", project, kept)
        return made


def _cause(row: asyncpg.Record) -> str:
    kinds = {Kind(kind): many for kind, many in row["kinds"].items()}
    return warning(row["path"], row["ago"], kinds)


async def _budgets(tenant: Tenant, project: str | None) -> Budgets:
    kept = await tenant.value("context_budgets", project) if project else None
    return DEFAULT.changed(kept) if kept else DEFAULT


async def _near(
    tenant: Tenant, scopes: Sequence[str], project: str | None, files: Sequence[str]
) -> list[Near]:
    named = open_files.clean(files)
    if not named:
        return []
    found = await tenant.rows(
        "briefing_files",
        list(scopes),
        open_files.names(named),
        open_files.folders(named),
        project,
        4 * NEAR_FILES,
    )
    why: dict[UUID, str] = {}
    for row in found:
        reason = open_files.why_near(row["path"], named)
        if reason and len(why) < NEAR_FILES:
            why.setdefault(row["id"], reason)
    shown = await tenant.rows("memories_by_ids", list(why), list(scopes)) if why else []
    memories = {row["id"]: rows.memory(row) for row in shown}
    return [Near(memories[one], reason) for one, reason in why.items() if one in memories]

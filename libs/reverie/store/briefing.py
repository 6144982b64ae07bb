"""What an agent should know before it starts: the rows behind the context block."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from reverie.domain.access import Principal
from reverie.domain.context import Briefing
from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.summary import without
from reverie.store import rows
from reverie.store.database import Database

INJECTED = tuple(kind.value for kind, how in TREATMENT.items() if how.injected)

LEANED_ON = 5
"""How many memories are shown because much of the graph leans on them, whatever their kind."""


class Briefings:
    """Reads all that a context block may show, in one transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def read(self, who: Principal, scopes: Sequence[str], limit: int = 200) -> Briefing:
        """Pinned and injected memories, stale ones, summaries and the latest session."""
        async with self._db.tenant(who.tenant) as tenant:
            memories = await tenant.rows(
                "briefing_memories", list(scopes), list(INJECTED), limit, LEANED_ON
            )
            stale = await tenant.rows("briefing_stale", list(scopes), 10)
            sessions = await tenant.rows("briefing_sessions", list(scopes), 1)
            summaries = await tenant.rows("summaries", list(scopes))
            gone = await tenant.rows("summaries_outlived", list(scopes)) if summaries else []
            shown = [r["id"] for r in (*memories, *stale) if r["kind"] == Kind.TASK.value]
            tasks = await tenant.rows("tasks_among", shown) if shown else []
        return Briefing(
            memories=tuple(rows.memory(row) for row in memories),
            stale=tuple(rows.memory(row) for row in stale),
            sessions=tuple(rows.memory(row) for row in sessions),
            summaries=_standing(summaries, gone),
            tasks={row["memory"]: row["state"] for row in tasks},
        )


def _standing(
    summaries: Sequence[asyncpg.Record], gone: Sequence[asyncpg.Record]
) -> tuple[tuple[str, str], ...]:
    """The summaries, less the lines of what was forgotten or replaced after they were written."""
    told = [
        (
            row["scope"],
            without(row["content"], [r["content"] for r in gone if r["scope"] == row["scope"]]),
        )
        for row in summaries
    ]
    return tuple((scope, text) for scope, text in told if text)

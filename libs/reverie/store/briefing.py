"""What an agent should know before it starts: the rows behind the context block."""

from __future__ import annotations

from collections.abc import Sequence

from reverie.domain.access import Principal
from reverie.domain.context import Briefing
from reverie.domain.kinds import TREATMENT, Kind
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
            shown = [r["id"] for r in (*memories, *stale) if r["kind"] == Kind.TASK.value]
            tasks = await tenant.rows("tasks_among", shown) if shown else []
        return Briefing(
            memories=tuple(rows.memory(row) for row in memories),
            stale=tuple(rows.memory(row) for row in stale),
            sessions=tuple(rows.memory(row) for row in sessions),
            summaries=tuple((row["scope"], row["content"]) for row in summaries),
            tasks={row["memory"]: row["state"] for row in tasks},
        )

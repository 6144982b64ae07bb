"""The leader lock of periodic work, and the size of the backlog that the leader works off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reverie.store.db.database import Database
from reverie.store.db.queries import get_query


@dataclass(frozen=True)
class WorkBacklog:
    """Work of all tenants that waits, and that failed too often to be tried again, for metrics."""

    memories: int
    changes: int
    failed_memories: int
    failed_changes: int


class LeaderLock:
    """Makes one process the leader for a round."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[bool]:
        """Whether this process may run the round inside; no other process does so concurrently."""
        async with self._db.transaction() as connection:
            yield bool(await connection.fetchval(get_query("leader_lock").sql))

    async def count_backlog(self) -> WorkBacklog:
        """Counts memories that wait for enrichment and changes that are not applied."""
        found = await self._db.fetch_rows("work_backlog")
        return WorkBacklog(**found[0])

"""The clock: what one process of a fleet does now and then, and how far work is behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reverie.store.database import Database
from reverie.store.queries import query


@dataclass(frozen=True)
class Behind:
    """Work of all tenants that waits, for metrics."""

    memories: int
    changes: int


class Clock:
    """Makes one process the leader for a round."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Whether this process may do the round that happens inside; none other does meanwhile."""
        async with self._db.transaction() as connection:
            yield bool(await connection.fetchval(query("clock_turn").sql))

    async def behind(self) -> Behind:
        """How many memories the slow path has not reached, and changes are not applied."""
        found = await self._db.rows("work_behind")
        return Behind(**found[0])

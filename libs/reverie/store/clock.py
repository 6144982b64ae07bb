"""The clock: what one process of a fleet does now and then, for all tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reverie.store.database import Database
from reverie.store.queries import query


class Clock:
    """Makes one process the leader for a round."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Whether this process may do the round that happens inside; none other does meanwhile."""
        async with self._db.transaction() as connection:
            yield bool(await connection.fetchval(query("clock_turn").sql))

"""Outbox rows that wait to be published."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent
from reverie.store.db.database import Database
from reverie.store.db.queries import get_query, get_sql


class OutboxClaim:
    """Rows locked for publishing; what is done is deleted when the claim closes."""

    def __init__(
        self, connection: asyncpg.Connection[asyncpg.Record], rows: Sequence[OutgoingEvent]
    ) -> None:
        self._connection = connection
        self.rows = rows

    async def done(self, ids: Sequence[UUID]) -> None:
        """Removes rows that were published."""
        await self._connection.execute(get_sql("outbox_done", 1), list(ids))


class OutboxTable:
    """The outbox of all tenants for the relay, and of one for the writer itself."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @asynccontextmanager
    async def claim(self, limit: int, older_than: float) -> AsyncIterator[OutboxClaim]:
        """Locks up to `limit` rows older than that many seconds, in the order of writing."""
        async with self._db.transaction() as connection:
            rows = await connection.fetch(get_query("outbox_claim").sql, limit, older_than)
            yield OutboxClaim(connection, [OutgoingEvent(**row) for row in rows])

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        """Deletes published rows; if the deletion is lost, they are published again."""
        await self._db.call("outbox_delete", tenant, list(ids))

    async def age(self) -> tuple[int, float]:
        """Returns the number of waiting rows, and the age of the oldest in seconds."""
        found = await self._db.fetch_rows("outbox_age")
        return found[0]["waiting"], found[0]["oldest_seconds"]

"""The outbox: events stored with the write, published after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg

from reverie.contracts.events import Outgoing
from reverie.store.database import Database
from reverie.store.queries import query


class Claim:
    """Rows locked for publishing; what is done is deleted when the claim closes."""

    def __init__(
        self, connection: asyncpg.Connection[asyncpg.Record], rows: Sequence[Outgoing]
    ) -> None:
        self._connection = connection
        self.rows = rows

    async def done(self, ids: Sequence[UUID]) -> None:
        """Removes rows that were published."""
        await self._connection.execute(query("outbox_done").sql, list(ids))


class OutboxTable:
    """The outbox of all tenants for the relay, and of one for the writer itself."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @asynccontextmanager
    async def claim(self, limit: int, older_than: float) -> AsyncIterator[Claim]:
        """Locks up to `limit` rows older than that many seconds, in the order of writing."""
        async with self._db.transaction() as connection:
            rows = await connection.fetch(query("outbox_claim").sql, limit, older_than)
            yield Claim(connection, [_outgoing(row) for row in rows])

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        """Removes rows that their writer published; one that comes back is published again."""
        await self._db.call("outbox_delete", tenant, list(ids))

    async def age(self) -> tuple[int, float]:
        """How many rows wait, and for how many seconds the oldest has."""
        found = await self._db.rows("outbox_age")
        return found[0]["waiting"], found[0]["oldest_seconds"]


def _outgoing(row: asyncpg.Record) -> Outgoing:
    return Outgoing(
        id=row["id"], subject=row["subject"], payload=row["payload"], headers=row["headers"]
    )

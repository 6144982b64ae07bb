"""Stores answers to requests under their idempotency keys."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from reverie.domain.core.consistency import IdempotencyClaim, StoredReply
from reverie.store.db.database import Database

CLAIM_LEASE = timedelta(seconds=15)
"""How long a claim stands by itself, unless the table is told otherwise."""

RETENTION = timedelta(days=1)


class IdempotencyTable:
    """Remembers answers by (tenant, key) for a day.

    A claim that was not renewed for `lease_seconds` is taken for that of a process that died, and
    the request is carried out again.
    """

    def __init__(
        self, database: Database, lease_seconds: float = CLAIM_LEASE.total_seconds()
    ) -> None:
        self._db = database
        self._lease = lease_seconds

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim:
        """Claims the key in one step, or says what stands under it; None: no body came yet."""
        async with self._db.tenant_transaction(tenant) as connection:
            claim = (key, route, body_hash or b"", self._lease)
            if await connection.fetch_row("idempotency_begin", *claim) is not None:
                return IdempotencyClaim.ACQUIRED
            row = await connection.fetch_row("idempotency_read", key)
        return IdempotencyClaim.IN_PROGRESS if row is None else _parse_claim(row, route, body_hash)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        """Keeps the answer, and what it says of the body asked."""
        values = (reply.status, reply.body, reply.headers, reply.request_hash or None)
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_finish", key, *values)

    async def renew(self, tenant: int, key: str) -> None:
        """Lets a claim stand longer: its holder is at work."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_renew", key)

    async def abandon(self, tenant: int, key: str) -> None:
        """Frees the key: nothing was done, or it is noted what was."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_abandon", key)
            await connection.fetch_rows("idempotency_free", key)

    async def sweep(self) -> int:
        """Forgets answers older than `RETENTION`, of all tenants; says how many."""
        found = await self._db.fetch_rows("idempotency_sweep", RETENTION.total_seconds())
        return int(found[0][0])


def _parse_claim(
    row: asyncpg.Record, route: str, body_hash: bytes | None
) -> StoredReply | IdempotencyClaim:
    if row["route"] != route or body_hash not in (None, row["body_hash"]):
        return IdempotencyClaim.KEY_REUSED
    if row["status"] is None:
        return IdempotencyClaim.IN_PROGRESS
    return StoredReply(row["status"], row["body"], row["headers"], row["body_hash"])

"""Answers kept under idempotency keys."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from reverie.domain.idempotency import Claim, StoredReply
from reverie.store.database import Database

LEASE = timedelta(seconds=15)
"""How long a claim stands by itself, unless the table is told otherwise."""

KEPT = timedelta(days=1)


class IdempotencyTable:
    """Remembers answers by (tenant, key) for a day.

    A claim that was not renewed for `lease_seconds` is taken for that of a process that died, and
    the request is carried out again.
    """

    def __init__(self, database: Database, lease_seconds: float = LEASE.total_seconds()) -> None:
        self._db = database
        self._lease = lease_seconds

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | Claim:
        """Claims the key in one step, or says what stands under it; None: no body came yet."""
        async with self._db.tenant(tenant) as t:
            claim = (key, route, body_hash or b"", self._lease)
            if await t.row("idempotency_begin", *claim) is not None:
                return Claim.MINE
            row = await t.row("idempotency_read", key)
        return Claim.BUSY if row is None else _standing(row, route, body_hash)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        """Keeps the answer, and what it says of the body asked."""
        told = (reply.status, reply.body, reply.headers, reply.asked or None)
        async with self._db.tenant(tenant) as t:
            await t.rows("idempotency_finish", key, *told)

    async def renew(self, tenant: int, key: str) -> None:
        """Lets a claim stand longer: its holder is at work."""
        async with self._db.tenant(tenant) as t:
            await t.rows("idempotency_renew", key)

    async def abandon(self, tenant: int, key: str) -> None:
        """Frees the key: nothing was done, or it is noted what was."""
        async with self._db.tenant(tenant) as t:
            await t.rows("idempotency_abandon", key)
            await t.rows("idempotency_free", key)

    async def sweep(self) -> int:
        """Forgets answers older than `KEPT`, of all tenants; says how many."""
        found = await self._db.rows("idempotency_sweep", KEPT.total_seconds())
        return int(found[0][0])


def _standing(row: asyncpg.Record, route: str, body_hash: bytes | None) -> StoredReply | Claim:
    if row["route"] != route or body_hash not in (None, row["body_hash"]):
        return Claim.OTHER
    if row["status"] is None:
        return Claim.BUSY
    return StoredReply(row["status"], row["body"], row["headers"], row["body_hash"])

"""Stores the answer of each idempotent request and runs each of its steps once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg

from reverie.domain.core.consistency import IdempotencyClaim, StoredReply, current_idempotency_key
from reverie.domain.core.errors import Unavailable
from reverie.store.db.connections import CONFLICT_ERRORS
from reverie.store.db.database import Database, TenantConnection

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
        return int(await self._db.call("delete_old_rows", "idempotency", RETENTION))


def _parse_claim(
    row: asyncpg.Record, route: str, body_hash: bytes | None
) -> StoredReply | IdempotencyClaim:
    if row["route"] != route or body_hash not in (None, row["body_hash"]):
        return IdempotencyClaim.KEY_REUSED
    if row["status"] is None:
        return IdempotencyClaim.IN_PROGRESS
    return StoredReply(row["status"], row["body"], row["headers"], row["body_hash"])


_ATTEMPTS = 5

T = TypeVar("T")


async def retry_on_conflict(write: Callable[[], Awaitable[T]], resource: str) -> T:
    """What the write answers. Raises `Unavailable` naming `resource` where it loses every time."""
    for _ in range(_ATTEMPTS):
        try:
            return await write()
        except Unavailable as error:
            # As which the pool tells it.
            if not isinstance(error.__cause__, CONFLICT_ERRORS):
                raise
    raise build_busy_error(resource)


def build_busy_error(resource: str) -> Unavailable:
    """The refusal where many write the same."""
    return Unavailable(resource, "many writers change it at once; try again")


async def run_once(
    connection: TenantConnection, step: str, work: Callable[[], Awaitable[Any]]
) -> Any:
    """The JSON that `work` answers; that of the first time where the request in force did it.

    `step` tells it from the other things that the same request does. What answers a `problem`
    changed nothing, and may be tried again. No text of anybody's may be in the answer, for what is
    kept of a request is not searched for secrets that become known later.
    """
    request = current_idempotency_key()
    if request is None:
        return await work()
    recorded = await connection.fetch_value("effect_get", request, step)
    if recorded is not None:
        return recorded["did"]
    result = await work()
    if not (isinstance(result, dict) and "problem" in result):
        await connection.fetch_rows("effect_put", request, step, {"did": result})
    return result


async def call_once(db: Database, name: str, tenant: int, step: str, *args: object) -> Any:
    """The first value of a statement whose function sets its own tenant, $1; once as above."""
    if current_idempotency_key() is None:
        return await db.call(name, tenant, *args)
    async with db.tenant_transaction(tenant) as connection:
        return await run_once(connection, step, lambda: connection.fetch_value(name, *args))

"""Stores the response of each idempotent request and runs each of its steps once."""

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
"""Seconds for which a claim is valid, unless the table is given another value."""

RETENTION = timedelta(days=1)


class IdempotencyTable:
    """Stores responses by (tenant, key) for a day.

    A claim that was not renewed for `lease_seconds` belongs to a dead process, and the request runs
    again.
    """

    def __init__(
        self, database: Database, lease_seconds: float = CLAIM_LEASE.total_seconds()
    ) -> None:
        self._db = database
        self._lease = lease_seconds

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim:
        """Claims the key in one step, or returns its entry; None: no body was stored yet."""
        async with self._db.tenant_transaction(tenant) as connection:
            claim = (key, route, body_hash or b"", self._lease)
            if await connection.fetch_row("idempotency_begin", *claim) is not None:
                return IdempotencyClaim.ACQUIRED
            row = await connection.fetch_row("idempotency_read", key)
        return IdempotencyClaim.IN_PROGRESS if row is None else _parse_claim(row, route, body_hash)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        """Stores the response, and the hash of the request body."""
        values = (reply.status, reply.body, reply.headers, reply.request_hash or None)
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_finish", key, *values)

    async def renew(self, tenant: int, key: str) -> None:
        """Renews a claim: its holder still works."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_renew", key)

    async def abandon(self, tenant: int, key: str) -> None:
        """Frees the key: nothing was written, or the result is recorded."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("idempotency_abandon", key)
            await connection.fetch_rows("idempotency_free", key)

    async def sweep(self) -> int:
        """Deletes responses older than `RETENTION`, of all tenants; returns the count."""
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
    """Retries a write on conflicts; returns its result.

    Raises `Unavailable` naming `resource` if every attempt fails.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await write()
        except Unavailable as error:
            # As which the pool tells it.
            if not isinstance(error.__cause__, CONFLICT_ERRORS):
                raise
    raise build_busy_error(resource)


def build_busy_error(resource: str) -> Unavailable:
    """Builds the error for too many concurrent writes."""
    return Unavailable(resource, "many writers change it at once; try again")


async def run_once(
    connection: TenantConnection, step: str, work: Callable[[], Awaitable[Any]]
) -> Any:
    """Returns the JSON result of `work`; the stored one if this request already ran it.

    `step` distinguishes it from other steps of the same request. A result with a `problem` changed
    nothing, and may be retried. The result must not contain user text, because stored results are
    not searched for secrets that become known later.
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
    """Returns the first value of a function that sets its own tenant, $1; runs once, as above."""
    if current_idempotency_key() is None:
        return await db.call(name, tenant, *args)
    async with db.tenant_transaction(tenant) as connection:
        return await run_once(connection, step, lambda: connection.fetch_value(name, *args))

"""Retries writes after conflicts and runs each step once per idempotency key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reverie.domain.core.consistency import current_idempotency_key
from reverie.domain.core.errors import Unavailable
from reverie.store.db.connections import CONFLICT_ERRORS
from reverie.store.db.database import Database, TenantConnection

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

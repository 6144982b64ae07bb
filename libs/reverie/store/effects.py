"""What a request with an idempotency key did, noted in the transaction that did it.

A request whose answer was lost after the commit, with its connection or its process, finds what it
did when it is sent again, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from reverie.domain.idempotency import request_in_force
from reverie.store.database import Database, Tenant


async def once(tenant: Tenant, place: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """The JSON that `work` answers; that of the first time where the request in force did it.

    `place` tells it from the other things that the same request does. What answers a `problem`
    changed nothing, and may be tried again. No text of anybody's may be in the answer, for what is
    kept of a request is not searched for secrets that become known later.
    """
    request = request_in_force()
    if request is None:
        return await work()
    done = await tenant.value("effect_found", request, place)
    if done is not None:
        return done["did"]
    did = await work()
    if not (isinstance(did, dict) and "problem" in did):
        await tenant.rows("effect_noted", request, place, {"did": did})
    return did


async def called_once(db: Database, name: str, tenant: int, place: str, *args: object) -> Any:
    """The first value of a statement whose function sets its own tenant, $1; once as above."""
    if request_in_force() is None:
        return await db.call(name, tenant, *args)
    async with db.tenant(tenant) as held:
        return await once(held, place, lambda: held.value(name, *args))

"""A change that carries an `Idempotency-Key` takes effect once, however often it is sent."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, IdempotencyMismatch, Invalid
from reverie.domain.idempotency import Claim, StoredReply, under

log = structlog.get_logger()

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
_LONGEST = 255
RENEW_SECONDS = 4.0
"""So often a claim is renewed while its request is answered."""


class IdempotencyStore(Protocol):
    """Remembers answers by (tenant, key) for a day or so.

    `begin` claims the key in one atomic step. It gives the stored answer where the same
    request (route and body hash) was answered; `Claim.OTHER` where the key stands for another
    one; `Claim.BUSY` where another call holds it; else `Claim.MINE`, and the caller must
    `finish` or `abandon`. A claim whose holder died is given away after a lease that is longer
    than a request may take, or that its holder may `renew`. Without a body hash the body is yet to
    come: `finish` is told it then, and a stored answer has it as `asked`.
    """

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | Claim: ...

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None: ...

    async def renew(self, tenant: int, key: str) -> None: ...

    async def abandon(self, tenant: int, key: str) -> None: ...


@dataclass
class InFlight(Conflict):
    """{reason}"""

    reason: str = "a request with this idempotency key is being answered: try again in a moment"
    retry_after: float = 1.0


def idempotency_key(headers: Mapping[str, str], principal: Principal | None) -> str | None:
    """The key of this request, apart from those of other holders; raises `Invalid`."""
    given = headers.get(HEADER)
    if given is None or principal is None:
        return None
    return key_of(principal, given)


def key_of(principal: Principal, given: str) -> str:
    """What a holder named a request, apart from the names of others; raises `Invalid`."""
    if not (0 < len(given) <= _LONGEST and given.isascii() and given.isprintable()):
        raise Invalid(HEADER, f"must be 1 to {_LONGEST} printable ASCII characters")
    return f"{principal.key_id}/{given}"


async def once(
    store: IdempotencyStore,
    tenant: int,
    key: str,
    request: tuple[str, bytes],
    answer: Callable[[], Awaitable[StoredReply]],
) -> StoredReply:
    """The stored answer of `request` (route and body), or that of `answer`, then stored.

    Raises `IdempotencyMismatch` or `InFlight`. Only success is stored: after an error the same key
    may try again, and what was written although its answer was lost is found, not written again.
    """
    route, body = request
    stored = _stored(key, await store.begin(tenant, key, route, hashlib.sha256(body).digest()))

    async def answered() -> StoredReply:
        with under(key):
            return await answer()

    return stored or await _answered(store, tenant, key, answered)


async def once_streamed(
    store: IdempotencyStore,
    tenant: int,
    key: str,
    request: tuple[str, AsyncIterator[bytes]],
    answer: Callable[[AsyncIterator[bytes]], Awaitable[StoredReply]],
) -> StoredReply:
    """The same for a body that is taken piece by piece: what it was is known once it was taken.

    A request that is sent again is read to its end, to see whether it is the same.
    """
    route, pieces = request
    asked = hashlib.sha256()
    body = _noted(pieces, asked)
    stored = _stored(key, await store.begin(tenant, key, route, None))
    if stored is not None:
        async for _ in body:
            continue
        if stored.asked != asked.digest():
            raise IdempotencyMismatch(key.partition("/")[2])
        return stored

    async def answered() -> StoredReply:
        reply = await answer(body)
        return replace(reply, asked=asked.digest())

    return await _answered(store, tenant, key, answered)


def _stored(key: str, found: StoredReply | Claim) -> StoredReply | None:
    """The answer to send again; None where the caller is to make it."""
    if isinstance(found, StoredReply):
        return replace(found, headers={**found.headers, REPLAYED: "true"})
    if found is Claim.MINE:
        return None
    raise IdempotencyMismatch(key.partition("/")[2]) if found is Claim.OTHER else InFlight()


async def _noted(pieces: AsyncIterator[bytes], asked: hashlib._Hash) -> AsyncIterator[bytes]:
    async for piece in pieces:
        asked.update(piece)
        yield piece


async def _keep(store: IdempotencyStore, tenant: int, key: str) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        await _quietly(store.renew(tenant, key))


async def _answered(
    store: IdempotencyStore, tenant: int, key: str, answer: Callable[[], Awaitable[StoredReply]]
) -> StoredReply:
    renewing = asyncio.create_task(_keep(store, tenant, key))
    try:
        reply = await answer()
    except BaseException:
        await _quietly(store.abandon(tenant, key))
        raise
    finally:
        renewing.cancel()
    await _quietly(store.finish(tenant, key, reply))
    return reply


async def _quietly(step: Awaitable[None]) -> None:
    """The work is done or undone by now; a store that fails here must not turn it around."""
    try:
        await step
    except Exception:
        log.warning("idempotency_not_recorded", exc_info=True)

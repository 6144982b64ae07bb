"""Idempotency keys: a repeated request gets the stored reply of the first one."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.domain.access.principals import Principal
from reverie.domain.core.consistency import IdempotencyClaim, StoredReply, use_idempotency_key
from reverie.domain.core.errors import Conflict, IdempotencyMismatch, InvalidInput, Unavailable
from reverie.runtime.process.asyncio_helpers import run_with_timeout

log = structlog.get_logger()

IDEMPOTENCY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
_MAX_KEY_LENGTH = 255
RENEW_SECONDS = 4.0
"""So often a claim is renewed while its request is answered."""


class IdempotencyStore(Protocol):
    """Stores answers by (tenant, key) for about a day.

    `begin` claims the key in one atomic step. It returns the stored answer if the same request
    (route and body hash) was answered. It returns `KEY_REUSED` if the key belongs to another
    request, and `IN_PROGRESS` if another call holds it. Otherwise it returns `ACQUIRED`, and the
    caller must `finish` or `abandon`.

    A claim expires after a lease that is longer than a request may take; its holder may `renew` it.
    Without a body hash, the body is not read yet: the reply passed to `finish` contains the hash,
    and so does a stored answer (`request_hash`).
    """

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim: ...

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None: ...

    async def renew(self, tenant: int, key: str) -> None: ...

    async def abandon(self, tenant: int, key: str) -> None: ...


@dataclass
class RequestInFlight(Conflict):
    """{reason}"""

    reason: str = "a request with this idempotency key is being answered: try again in a moment"
    retry_after: float = 1.0


def request_idempotency_key(headers: Mapping[str, str], principal: Principal | None) -> str | None:
    """The key of this request, apart from those of other holders; raises `InvalidInput`."""
    header_value = headers.get(IDEMPOTENCY_HEADER)
    if header_value is None or principal is None:
        return None
    return principal_key(principal, header_value)


def check_idempotency_key(name: str) -> None:
    """Raises `InvalidInput` for a key that is too long, or that a header could not hold."""
    if not (0 < len(name) <= _MAX_KEY_LENGTH and name.isascii() and name.isprintable()):
        raise InvalidInput(
            IDEMPOTENCY_HEADER, f"must be 1 to {_MAX_KEY_LENGTH} printable ASCII characters"
        )


def principal_key(principal: Principal, name: str) -> str:
    """Builds the key of a request, unique to its principal; raises `InvalidInput`."""
    check_idempotency_key(name)
    return f"{principal.key_id}/{name}"


async def run_once(
    store: IdempotencyStore,
    tenant: int,
    key: str,
    request: tuple[str, bytes],
    answer: Callable[[], Awaitable[StoredReply]],
) -> StoredReply:
    """The stored answer of `request` (route and body), or that of `answer`, then stored.

    Raises `IdempotencyMismatch` or `RequestInFlight`. Only success is stored: after an error the
    same key may try again, and what was written although its answer was lost is found, not
    written again.
    """
    route, body = request
    replayed = _replayed_reply(
        key, await store.begin(tenant, key, route, hashlib.sha256(body).digest())
    )

    async def answered() -> StoredReply:
        with use_idempotency_key(key):
            return await answer()

    return replayed or await _run_claimed(store, tenant, key, answered)


async def run_once_streaming(
    store: IdempotencyStore,
    tenant: int,
    key: str,
    request: tuple[str, AsyncIterator[bytes]],
    answer: Callable[[AsyncIterator[bytes]], Awaitable[StoredReply]],
) -> StoredReply:
    """The same for a body that is taken piece by piece: what it was is known once it was taken.

    A request that is sent again is read to its end, to see whether it is the same.
    """
    route, chunks = request
    hasher = hashlib.sha256()
    body = _hash_chunks(chunks, hasher)
    replayed = _replayed_reply(key, await store.begin(tenant, key, route, None))
    if replayed is not None:
        async for _ in body:
            continue
        if replayed.request_hash != hasher.digest():
            raise IdempotencyMismatch(key.partition("/")[2])
        return replayed

    async def answered() -> StoredReply:
        reply = await answer(body)
        return replace(reply, request_hash=hasher.digest())

    return await _run_claimed(store, tenant, key, answered)


def _replayed_reply(key: str, found: StoredReply | IdempotencyClaim) -> StoredReply | None:
    """Returns the stored answer to repeat; None if the caller must produce it."""
    if isinstance(found, StoredReply):
        return replace(found, headers={**found.headers, REPLAYED_HEADER: "true"})
    if found is IdempotencyClaim.ACQUIRED:
        return None
    raise (
        IdempotencyMismatch(key.partition("/")[2])
        if found is IdempotencyClaim.KEY_REUSED
        else RequestInFlight()
    )


async def _hash_chunks(chunks: AsyncIterator[bytes], hasher: hashlib._Hash) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        hasher.update(chunk)
        yield chunk


async def _renew_claim(store: IdempotencyStore, tenant: int, key: str) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        await _log_failure(store.renew(tenant, key))


async def _run_claimed(
    store: IdempotencyStore, tenant: int, key: str, answer: Callable[[], Awaitable[StoredReply]]
) -> StoredReply:
    renewal = asyncio.create_task(_renew_claim(store, tenant, key))
    try:
        reply = await answer()
    except BaseException:
        await _log_failure(store.abandon(tenant, key))
        raise
    finally:
        renewal.cancel()
    await _log_failure(store.finish(tenant, key, reply))
    return reply


async def _log_failure(step: Awaitable[None]) -> None:
    """The work is done or undone by now; a store that fails here must not turn it around."""
    try:
        await step
    except Exception:
        log.warning("idempotency_record_failed", exc_info=True)


STORE_TIMEOUT = 1.0
"""Seconds to wait for the store, before a read and after it."""


class BestEffortIdempotency:
    """Idempotency for reads: if the store is unavailable or late, the key is ignored."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store
        self._claimed = False

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim:
        """Returns the store's result if it arrives in time; else that the request is unanswered."""
        try:
            found = await run_with_timeout(
                self._store.begin(tenant, key, route, body_hash), STORE_TIMEOUT
            )
        except (TimeoutError, Unavailable) as error:
            log.warning("idempotency_lookup_failed", error=type(error).__name__)
            return IdempotencyClaim.ACQUIRED
        self._claimed = found is IdempotencyClaim.ACQUIRED
        return found

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        """Keeps the answer of a key that was claimed."""
        if self._claimed:
            await run_with_timeout(self._store.finish(tenant, key, reply), STORE_TIMEOUT)

    async def renew(self, tenant: int, key: str) -> None:
        """Extends a claim."""
        if self._claimed:
            await self._store.renew(tenant, key)

    async def abandon(self, tenant: int, key: str) -> None:
        """Frees a key that was claimed."""
        if self._claimed:
            await run_with_timeout(self._store.abandon(tenant, key), STORE_TIMEOUT)


NONCE_BYTES = 12
_OTHER_KEY_MESSAGE = (
    "this request was answered under another key: what it made is shown to that one only"
)


@dataclass(frozen=True)
class EncryptedIdempotency:
    """An `IdempotencyStore` over another, for who sent `bearer`."""

    store: IdempotencyStore
    bearer: str

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim:
        """Claims the key like the wrapped store; raises `Conflict` if another key can read the
        answer.
        """
        found = await self.store.begin(tenant, key, route, body_hash)
        if isinstance(found, IdempotencyClaim):
            return found
        try:
            plaintext = self._cipher().decrypt(
                found.body[:NONCE_BYTES], found.body[NONCE_BYTES:], key.encode()
            )
        except InvalidTag:
            raise Conflict(_OTHER_KEY_MESSAGE) from None
        return replace(found, body=plaintext)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        body = nonce + self._cipher().encrypt(nonce, reply.body, key.encode())
        await self.store.finish(tenant, key, replace(reply, body=body))

    async def renew(self, tenant: int, key: str) -> None:
        await self.store.renew(tenant, key)

    async def abandon(self, tenant: int, key: str) -> None:
        await self.store.abandon(tenant, key)

    def _cipher(self) -> AESGCM:
        return AESGCM(hashlib.sha256(b"reverie kept answer\0" + self.bearer.encode()).digest())

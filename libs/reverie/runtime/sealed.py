"""Kept answers that show a secret: only who asked can read them, with the key that was sent.

AES-256-GCM under a hash of the sender's key, which is stored nowhere, bound to the request's name;
12 bytes of nonce before it.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.domain.errors import Conflict
from reverie.domain.idempotency import Claim, StoredReply
from reverie.runtime.idempotency import IdempotencyStore

NONCE = 12
_SHOWN = "this request was answered under another key: what it made is shown to that one only"


@dataclass(frozen=True)
class Sealed:
    """An `IdempotencyStore` over another, for who sent `bearer`."""

    store: IdempotencyStore
    bearer: str

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | Claim:
        """As the other; raises `Conflict` where another key can read the answer."""
        found = await self.store.begin(tenant, key, route, body_hash)
        if isinstance(found, Claim):
            return found
        try:
            plain = self._cipher().decrypt(found.body[:NONCE], found.body[NONCE:], key.encode())
        except InvalidTag:
            raise Conflict(_SHOWN) from None
        return replace(found, body=plain)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        nonce = secrets.token_bytes(NONCE)
        body = nonce + self._cipher().encrypt(nonce, reply.body, key.encode())
        await self.store.finish(tenant, key, replace(reply, body=body))

    async def renew(self, tenant: int, key: str) -> None:
        await self.store.renew(tenant, key)

    async def abandon(self, tenant: int, key: str) -> None:
        await self.store.abandon(tenant, key)

    def _cipher(self) -> AESGCM:
        return AESGCM(hashlib.sha256(b"reverie kept answer\0" + self.bearer.encode()).digest())

"""Decides which events a principal may see and encrypts stream positions as cursors."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import InvalidInput, Unauthenticated
from reverie.store.db.database import Database

NONCE_BYTES = 12
MAX_CURSOR_LENGTH = 48


class CursorCipher:
    """Seals and opens the numbers of one tenant."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def encrypt(self, purpose: str, number: int) -> str:
        """A mark of the number that opens for this use alone; `number` from 0 below 2**64."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        ciphertext = self._cipher.encrypt(nonce, number.to_bytes(8), purpose.encode())
        return base64.urlsafe_b64encode(nonce + ciphertext).decode().rstrip("=")

    def decrypt(self, purpose: str, cursor: str, field: str) -> int:
        """Returns the number.

        Raises `InvalidInput` naming the field if the cursor is not this tenant's.
        """
        try:
            data = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
            plain = self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], purpose.encode())
        except (InvalidTag, ValueError, binascii.Error):
            raise InvalidInput(
                field, "was not issued by this gateway; leave it out to start again"
            ) from None
        return int.from_bytes(plain)


async def load_cursor_cipher(database: Database, principal: Principal) -> CursorCipher:
    """Loads the cipher of the caller's tenant. Raises `Unauthenticated` if that was deleted."""
    async with database.tenant_transaction(principal.tenant) as connection:
        key = await connection.fetch_value("cursor_key")
    if key is None:
        raise Unauthenticated
    return CursorCipher(key)


@dataclass(frozen=True)
class VisibleMemory:
    """The visible part of a memory in an event."""

    id: UUID
    scope: str
    kind: str


def has_token_expired(principal: Principal) -> bool:
    """Whether the rights of a token have ended."""
    expires_at = principal.token_expires_at
    return expires_at is not None and expires_at <= datetime.now(UTC)


class EventVisibility:
    """Looks up the memories that events mention, each call within one tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load_visible(
        self, principal: Principal, memories: Sequence[UUID]
    ) -> dict[UUID, VisibleMemory]:
        """Those of the memories that the key may read, forgotten ones included."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "event_memories", list(memories), list(principal.reads)
            )
        return {row["id"]: VisibleMemory(**row) for row in found}

    async def is_key_valid(self, principal: Principal) -> bool:
        """Whether the key, or the token, is still valid."""
        if has_token_expired(principal):
            return False
        if principal.token_expires_at is not None:
            return await self._db.call("tenant_find", principal.tenant_name) is not None
        async with self._db.tenant_transaction(principal.tenant) as connection:
            return bool(await connection.fetch_value("key_is_valid", UUID(principal.key_id)))

    async def load_cursor_cipher(self, principal: Principal) -> CursorCipher:
        """Loads the cipher for positions in the event stream. Raises `Unauthenticated`."""
        return await load_cursor_cipher(self._db, principal)

"""Numbers that all tenants share, as text that tells nothing and that only one tenant can use.

A mark is a nonce of 12 bytes and 8 sealed bytes with their tag of 16 (AES-256-GCM), in base64 that
is safe in addresses: 48 characters. The same number is another mark each time, so that nobody can
count by them. The key is the tenant's own and stands in the database: marks outlive every process.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.domain.access import Principal
from reverie.domain.errors import Invalid, Unauthenticated
from reverie.store.database import Database

NONCE = 12
LONGEST = 48


class Marks:
    """Seals and opens the numbers of one tenant."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, use: str, number: int) -> str:
        """A mark of the number that opens for this use alone; `number` from 0 below 2**64."""
        nonce = secrets.token_bytes(NONCE)
        sealed = self._cipher.encrypt(nonce, number.to_bytes(8), use.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, use: str, mark: str, field: str) -> int:
        """The number. Raises `Invalid` naming the field where the mark is not this tenant's."""
        try:
            sealed = base64.b64decode(mark.encode("ascii"), altchars=b"-_", validate=True)
            plain = self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], use.encode())
        except (InvalidTag, ValueError, binascii.Error):
            raise Invalid(
                field, "is none that was given here; leave it out to begin anew"
            ) from None
        return int.from_bytes(plain)


async def marks_of(database: Database, who: Principal) -> Marks:
    """The marks of the caller's tenant. Raises `Unauthenticated` where it is gone."""
    async with database.tenant(who.tenant) as tenant:
        key = await tenant.value("mark_key")
    if key is None:
        raise Unauthenticated
    return Marks(key)

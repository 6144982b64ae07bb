"""Stores sign-ins to the console, for all gateways, and links that sign in once."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.store.db.database import Database

_NONCE_BYTES = 12
_TOKEN = re.compile(r"(\d{1,9})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class ConsoleToken:
    """The text that a browser holds: the tenant's number and 256 random bits."""

    tenant: int
    secret: str

    def __str__(self) -> str:
        return f"{self.tenant}.{self.secret}"

    @property
    def hash(self) -> bytes:
        """What is stored in place of the text."""
        return hashlib.sha256(str(self).encode()).digest()

    def derive(self, purpose: str) -> bytes:
        """32 bytes that only a holder of the text can compute, different for each purpose."""
        return hashlib.sha256(f"reverie console {purpose}\0{self}".encode()).digest()


def parse_token(text: str) -> ConsoleToken | None:
    """A token from its text; None if it has not the form of one."""
    match = _TOKEN.fullmatch(text)
    return ConsoleToken(int(match[1]), match[2]) if match else None


class ConsoleSessionStore:
    """The sign-ins and links of all tenants.

    A caller's key is encrypted with a key that derives from the token. The token is not stored, so
    whoever reads the table learns no key and can sign in as nobody.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(
        self, tenant: int, api_key: str, seconds: float, is_link: bool = False
    ) -> ConsoleToken:
        """A new sign-in, or a new link, for the holder of a key."""
        token = ConsoleToken(tenant, secrets.token_urlsafe(32))
        nonce = secrets.token_bytes(_NONCE_BYTES)
        encrypted = nonce + AESGCM(token.derive("key")).encrypt(nonce, api_key.encode(), None)
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows(
                "console_session_add", token.hash, is_link, encrypted, float(seconds)
            )
        return token

    async def find_key(self, token: ConsoleToken) -> str | None:
        """The API key of a sign-in; None if it is unknown or has expired."""
        async with self._db.tenant_transaction(token.tenant) as connection:
            encrypted = await connection.fetch_value("console_session_find", token.hash)
        return _decrypt(token, encrypted)

    async def redeem(self, token: ConsoleToken, is_link: bool) -> str | None:
        """Deletes a sign-in or a link, and returns its API key: a link works once."""
        async with self._db.tenant_transaction(token.tenant) as connection:
            encrypted = await connection.fetch_value("console_session_take", token.hash, is_link)
        return _decrypt(token, encrypted)


def _decrypt(token: ConsoleToken, encrypted: bytes | None) -> str | None:
    if encrypted is None:
        return None
    nonce, body = encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:]
    try:
        return AESGCM(token.derive("key")).decrypt(nonce, body, None).decode()
    except InvalidTag:
        return None

"""Secret values at rest: AES-256-GCM, bound to the place they stand in.

A sealed value is a nonce of 12 bytes and the ciphertext with its tag of 16. Tenant, scope and key
are authenticated with it, so that a value copied to another place does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from reverie.domain.errors import Misconfigured, Unavailable

NONCE = 12
KEY_BYTES = 32
SETTING = "vault_key"
_WANTED = "must be base64 of 32 bytes (openssl rand -base64 32); several, newest first, by commas"


@dataclass(frozen=True)
class Place:
    """Where a value stands. None of the parts may hold a slash that another part could claim."""

    tenant: int
    scope: str
    key: str

    def bound(self) -> bytes:
        """What is authenticated with a value."""
        return f"{self.tenant}/{self.scope}/{self.key}".encode()


class Sealer:
    """Seals under the newest master key, opens under any of them."""

    def __init__(self, keys: list[bytes]) -> None:
        self._keys = {_key_id(key): AESGCM(key) for key in keys}
        self.newest = _key_id(keys[0]) if keys else None

    def seal(self, place: Place, value: Any) -> tuple[bytes, str]:
        """A JSON value as it is stored, and the id of its master key. Raises `Misconfigured`."""
        if self.newest is None:
            raise Misconfigured(SETTING, "is not set, and secret values need it")
        nonce, plain = secrets.token_bytes(NONCE), json.dumps(value, ensure_ascii=False).encode()
        sealed = self._keys[self.newest].encrypt(nonce, plain, place.bound())
        return nonce + sealed, self.newest

    def holds(self, key_id: str | None) -> bool:
        """Whether the master key of this id is at hand; a value that is not sealed needs none."""
        return key_id is None or key_id in self._keys

    def open(self, place: Place, sealed: bytes, key_id: str) -> Any:
        """The value. Raises `Unavailable` where its master key is missing or does not fit."""
        cipher = self._keys.get(key_id)
        if cipher is None:
            raise Unavailable(
                f"the master key {key_id}",
                f"{place.key} is sealed under it: add it to {SETTING}, or put or delete the entry",
            )
        try:
            plain = cipher.decrypt(sealed[:NONCE], sealed[NONCE:], place.bound())
        except InvalidTag:
            raise Unavailable(f"the vault's entry {place.key}", "it was altered at rest") from None
        return json.loads(plain)


def sealer_of(text: str | None) -> Sealer:
    """The sealer of the setting's text; one without keys for None. Raises `Misconfigured`."""
    return Sealer([_key(part.strip()) for part in (text or "").split(",") if part.strip()])


def _key(text: str) -> bytes:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Misconfigured(SETTING, _WANTED) from None
    if len(key) != KEY_BYTES:
        raise Misconfigured(SETTING, _WANTED)
    return key


def _key_id(key: bytes) -> str:
    """Names a master key without telling it: 8 bytes of a hash of their own."""
    return hashlib.sha256(b"reverie vault master key\0" + key).hexdigest()[:16]

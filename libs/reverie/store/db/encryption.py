"""Encrypts secret values with AES-256-GCM, bound to tenant, scope and key."""

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

from reverie.domain.core.errors import Misconfigured, Unavailable

NONCE_BYTES = 12
KEY_BYTES = 32
KEY_SETTING = "vault_key"
_KEY_FORMAT = (
    "must be base64 of 32 bytes (openssl rand -base64 32); several, newest first, by commas"
)


@dataclass(frozen=True)
class SecretLocation:
    """The location of a value. No part may contain a slash that another part could claim."""

    tenant: int
    scope: str
    key: str

    def encode_associated_data(self) -> bytes:
        """Encodes the location that is authenticated with a value."""
        return f"{self.tenant}/{self.scope}/{self.key}".encode()


class SecretCipher:
    """Seals under the newest master key, opens under any of them."""

    def __init__(self, keys: list[bytes]) -> None:
        self._keys = {_key_id(key): AESGCM(key) for key in keys}
        self.newest_key_id = _key_id(keys[0]) if keys else None

    def encrypt(self, location: SecretLocation, value: Any) -> tuple[bytes, str]:
        """A JSON value as it is stored, and the id of its master key. Raises `Misconfigured`."""
        if self.newest_key_id is None:
            raise Misconfigured(KEY_SETTING, "is not set, and secret values need it")
        nonce, plain = (
            secrets.token_bytes(NONCE_BYTES),
            json.dumps(value, ensure_ascii=False).encode(),
        )
        ciphertext = self._keys[self.newest_key_id].encrypt(
            nonce, plain, location.encode_associated_data()
        )
        return nonce + ciphertext, self.newest_key_id

    def has_key(self, key_id: str | None) -> bool:
        """Whether the master key of this id is available; an unencrypted value needs no key."""
        return key_id is None or key_id in self._keys

    def decrypt(self, location: SecretLocation, ciphertext: bytes, key_id: str) -> Any:
        """Decrypts the value. Raises `Unavailable` if its master key is missing or wrong."""
        cipher = self._keys.get(key_id)
        if cipher is None:
            raise Unavailable(
                f"the master key {key_id}",
                (
                    f"{location.key} is sealed under it: add it to {KEY_SETTING}, or put or "
                    f"delete the entry"
                ),
            )
        try:
            plain = cipher.decrypt(
                ciphertext[:NONCE_BYTES],
                ciphertext[NONCE_BYTES:],
                location.encode_associated_data(),
            )
        except InvalidTag:
            raise Unavailable(
                f"the vault's entry {location.key}", "it was altered at rest"
            ) from None
        return json.loads(plain)


def create_cipher(text: str | None) -> SecretCipher:
    """Creates the cipher of the setting's text; without keys for None. Raises `Misconfigured`."""
    return SecretCipher(
        [_parse_key(part.strip()) for part in (text or "").split(",") if part.strip()]
    )


def _parse_key(text: str) -> bytes:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Misconfigured(KEY_SETTING, _KEY_FORMAT) from None
    if len(key) != KEY_BYTES:
        raise Misconfigured(KEY_SETTING, _KEY_FORMAT)
    return key


def _key_id(key: bytes) -> str:
    """Names a master key without telling it: 8 bytes of a hash of their own."""
    return hashlib.sha256(b"reverie vault master key\0" + key).hexdigest()[:16]

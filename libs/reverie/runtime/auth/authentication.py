"""Authenticates bearer keys and tokens; key lookups are cached for a few seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol
from urllib.parse import unquote

import structlog
from cachetools import TTLCache

from reverie.contracts.headers import USER_HEADER
from reverie.domain.access.principals import Principal, hash_key
from reverie.domain.access.scopes import MAX_NAME_LENGTH
from reverie.domain.core.errors import ReverieError, Unauthenticated, Unavailable

log = structlog.get_logger()

_MAX_CACHED_KEYS = 10_000
_MAX_KEY_LENGTH = 8192


class KeyFinder(Protocol):
    """Finds the principal of a key by its SHA-256; None if the key is unknown, revoked or expired.

    Raises `Unavailable` if the store does not answer.
    """

    async def find(self, key_hash: bytes) -> Principal | None: ...


Authenticator = Callable[[Mapping[str, str]], Awaitable[Principal]]
"""Returns the principal of the key in the call's headers.

Raises `Unauthenticated`, `Unavailable`.
"""

TenantLookup = Callable[[str], Awaitable[int | None]]
"""The number of a tenant by its name."""


class TokenVerifier(Protocol):
    """Returns the principal of an identity provider's token.

    Raises `Unauthenticated`, `Unavailable`.
    """

    async def verify(self, token: str) -> Principal: ...


def is_jwt(text: str) -> bool:
    """Whether a bearer is three parts joined by dots, as no key of ours is."""
    return text.count(".") == 2 and text.startswith("ey")


class CachedKeyFinder:
    """Caches found keys for `ttl` seconds, so that a revoked key works that much longer.

    Unknown keys are not cached, so that a new key works at once.
    """

    def __init__(self, finder: KeyFinder, ttl: float) -> None:
        self._finder = finder
        self._cache: TTLCache[bytes, Principal] = TTLCache(_MAX_CACHED_KEYS, ttl)

    async def find(self, key_hash: bytes) -> Principal | None:
        principal = self._cache.get(key_hash)
        if principal is not None:
            return principal
        try:
            principal = await self._finder.find(key_hash)
        except ReverieError:
            raise
        except Exception as error:
            log.exception("key_lookup_failed")
            raise Unavailable("the key store", "try again in a moment") from error
        if principal is not None:
            self._cache[key_hash] = principal
        return principal


async def authenticate(
    headers: Mapping[str, str], keys: KeyFinder, tokens: TokenVerifier | None = None
) -> Principal:
    """The holder of the key, or of the token, that is sent, with the user whom the call names.

    Raises `Unauthenticated`.
    """
    key = bearer_token(headers)
    if key and tokens is not None and is_jwt(key):
        principal: Principal | None = await tokens.verify(key)
    else:
        principal = await keys.find(hash_key(key)) if key else None
    if principal is None:
        raise Unauthenticated
    structlog.contextvars.bind_contextvars(tenant=principal.tenant_name)
    user = unquote(headers.get(USER_HEADER, "")).strip()
    if not user:
        return principal
    return replace(principal, acting_user=user[:MAX_NAME_LENGTH])


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The key that a request brings."""
    return parse_bearer(headers.get("Authorization", ""))


def parse_bearer(header: str) -> str | None:
    """The key in an `Authorization` header, if it has the form of one."""
    scheme, _, key = header.strip().partition(" ")
    key = key.strip()
    is_valid = key.isascii() and key.isprintable() and 0 < len(key) <= _MAX_KEY_LENGTH
    return key if scheme.lower() == "bearer" and is_valid else None

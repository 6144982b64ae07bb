"""Bearer keys: looked up by hash, kept for a short while, never logged."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from reverie.domain.access import Principal, key_hash
from reverie.domain.errors import ReverieError, Unauthenticated, Unavailable

log = structlog.get_logger()

_CACHED_KEYS = 10_000
_LONGEST_KEY = 8192
KEY_PROTOCOL = "reverie.key."
"""What comes before the key among the protocols that a WebSocket offers."""


class KeyFinder(Protocol):
    """Who holds a key, by its SHA-256; None for an unknown, revoked or expired one.

    Raises `Unavailable` where the store does not answer.
    """

    async def find(self, key_hash: bytes) -> Principal | None: ...


Admit = Callable[[Mapping[str, str]], Awaitable[Principal]]
"""Who holds the key in the headers of a call. Raises `Unauthenticated`, `Unavailable`."""

TenantOf = Callable[[str], Awaitable[int | None]]
"""The number of a tenant by its name."""


class TokenReader(Protocol):
    """Who holds a token of an identity provider. Raises `Unauthenticated`, `Unavailable`."""

    async def holder(self, token: str) -> Principal: ...


def looks_like_token(text: str) -> bool:
    """Whether a bearer is three parts joined by dots, as no key of ours is."""
    return text.count(".") == 2 and text.startswith("ey")


class CachedKeys:
    """Keys found within the last `seconds`; a revoked key works that much longer.

    Unknown keys are not kept, so that a new key works at once.
    """

    def __init__(self, finder: KeyFinder, seconds: float, size: int = _CACHED_KEYS) -> None:
        self._finder = finder
        self._seconds = seconds
        self._size = size
        self._kept: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def find(self, key_hash: bytes) -> Principal | None:
        kept = self._kept.get(key_hash)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        principal = await self._ask(key_hash)
        self._keep(key_hash, principal)
        return principal

    async def _ask(self, key_hash: bytes) -> Principal | None:
        """A store that fails is not a wrong key."""
        try:
            return await self._finder.find(key_hash)
        except ReverieError:
            raise
        except Exception as error:
            log.exception("key_lookup_failed")
            raise Unavailable("the key store", "try again in a moment") from error

    def _keep(self, key_hash: bytes, principal: Principal | None) -> None:
        self._kept.pop(key_hash, None)
        if principal is None:
            return
        self._kept[key_hash] = (time.monotonic() + self._seconds, principal)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)


async def authenticate(
    headers: Mapping[str, str], keys: KeyFinder, tokens: TokenReader | None = None
) -> Principal:
    """The holder of the key, or of the token, that is sent; raises `Unauthenticated`."""
    key = bearer_of(headers)
    if key and tokens is not None and looks_like_token(key):
        principal: Principal | None = await tokens.holder(key)
    else:
        principal = await keys.find(key_hash(key)) if key else None
    if principal is None:
        raise Unauthenticated
    structlog.contextvars.bind_contextvars(tenant=principal.tenant_name)
    return principal


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """The key that a request brings: a page opens a WebSocket with no headers but protocols."""
    if "Authorization" in headers:
        return bearer(headers["Authorization"])
    offered = headers.get("Sec-WebSocket-Protocol", "").split(",")
    keys = [one.strip().removeprefix(KEY_PROTOCOL) for one in offered if KEY_PROTOCOL in one]
    return bearer(f"Bearer {keys[0]}") if keys else None


def bearer(header: str) -> str | None:
    """The key in an `Authorization` header, if it has the form of one."""
    scheme, _, key = header.strip().partition(" ")
    key = key.strip()
    plausible = key.isascii() and key.isprintable() and 0 < len(key) <= _LONGEST_KEY
    return key if scheme.lower() == "bearer" and plausible else None

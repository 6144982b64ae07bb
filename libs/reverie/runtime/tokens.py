"""Tokens of an identity provider (OpenID Connect): who holds one, by its claims.

A token is signed by a key that the provider publishes (JWKS); nothing is asked of it for a single
request. What a token may do stands in its claims, under names that the settings give.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

import jwt
import structlog

from reverie.domain.access import Principal, Role
from reverie.domain.errors import Invalid, Unauthenticated, Unavailable
from reverie.domain.scopes import agent_name, parse_pattern, slug
from reverie.runtime.auth import TenantOf

log = structlog.get_logger()

_T = TypeVar("_T")

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures by a key of the provider alone: none that a shared secret, or nobody, could make."""
_LEEWAY = 30.0
_KEPT_SECONDS = 600
_TRUSTED_SECONDS = 3600.0
"""Keys are fetched anew after the first, and used for as long as the second while that fails."""
_FETCH_SECONDS = 5
_AGAIN_SECONDS = 10.0


@dataclass(frozen=True)
class Provider:
    """Whose tokens are taken, and how their claims are read.

    `scopes`: what a token may read and write that names no scopes itself.
    """

    issuer: str
    audience: str
    jwks_url: str
    tenant_claim: str = "tenant"
    role_claim: str = "role"
    reads_claim: str = "reads"
    writes_claim: str = "writes"
    scopes: tuple[str, ...] = ()


class Tokens:
    """Reads tokens. The provider's keys are fetched when an unknown one is named, then kept.

    One request at a time asks the provider, so that one that hangs holds up nobody whose key is
    known, and takes no threads from others.
    """

    def __init__(self, provider: Provider, tenant_of: TenantOf) -> None:
        self._provider, self._tenant_of = provider, tenant_of
        self._keys = jwt.PyJWKClient(provider.jwks_url, cache_jwk_set=False, timeout=_FETCH_SECONDS)
        self._kept: list[jwt.PyJWK] = []
        self._asked, self._answered = -_AGAIN_SECONDS, -_TRUSTED_SECONDS
        self._turn = asyncio.Lock()

    async def holder(self, token: str) -> Principal:
        """Who holds the token. Raises `Unauthenticated`, and `Unavailable` without the keys."""
        try:
            key = await self._key(jwt.get_unverified_header(token).get("kid") or "")
            claims = await asyncio.to_thread(self._claims, token, key)
            return await self._principal(claims)
        except Invalid as error:
            log.info("token_refused", reason=error.reason, claim=error.field)
        except (jwt.PyJWTError, ValueError) as error:
            log.info("token_refused", reason=type(error).__name__)
        raise Unauthenticated

    def _claims(self, token: str, key: jwt.PyJWK) -> Mapping[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=self._provider.audience,
            issuer=self._provider.issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        """The key of that name; the provider is asked again for one that is not known, but rarely.

        Anybody may name a key that is none.
        """
        known = self._known(kid)
        if known is None or (self._is_old() and not self._turn.locked()):
            async with self._turn:
                await self._look(kid)
            known = self._known(kid)
        if known is None and self._answered < self._asked:
            raise Unavailable("the identity provider", "its keys cannot be fetched")
        if known is None:
            raise jwt.InvalidKeyError
        return known

    def _known(self, kid: str) -> jwt.PyJWK | None:
        if time.monotonic() - self._answered > _TRUSTED_SECONDS:
            return None
        return self._keys.match_kid(self._kept, kid)

    def _is_old(self) -> bool:
        return time.monotonic() - self._answered > _KEPT_SECONDS

    async def _look(self, kid: str) -> None:
        """Fetches the keys, unless another did meanwhile or they were asked for just now."""
        wanted = self._is_old() or self._known(kid) is None
        if not wanted or time.monotonic() - self._asked < _AGAIN_SECONDS:
            return
        self._asked = time.monotonic()
        try:
            self._kept = await asyncio.to_thread(self._keys.get_signing_keys)
        except (jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError) as error:
            log.warning("provider_keys_not_fetched", reason=type(error).__name__)
        else:
            self._answered = time.monotonic()

    async def _principal(self, claims: Mapping[str, Any]) -> Principal:
        told = self._provider
        name = _claim(claims, told.tenant_claim)
        number = await self._tenant_of(str(name)) if name else None
        if number is None:
            raise Invalid(told.tenant_claim, "names no tenant that there is")
        return Principal(
            tenant=number,
            tenant_name=str(name),
            key_id=str(uuid5(NAMESPACE_URL, f"{told.issuer} {claims['sub']}")),
            role=_read(claims, told.role_claim, _role),
            reads=_read(claims, told.reads_claim, lambda given: _patterns(given, told.scopes)),
            writes=_read(claims, told.writes_claim, lambda given: _patterns(given, told.scopes)),
            project=_read(claims, "project", lambda name: slug(str(name)) if name else None),
            agent=_read(claims, "agent", lambda name: agent_name(str(name)) if name else None),
        )


def _read(claims: Mapping[str, Any], path: str, reading: Callable[[Any], _T]) -> _T:
    """What a claim says. Raises `Invalid`, which names the claim and not what it holds."""
    try:
        return reading(_claim(claims, path))
    except (Invalid, TypeError, ValueError):
        raise Invalid(path, "cannot be read") from None


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, or by a path into others, as `realm_access.tenant`."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _role(given: Any) -> Role:
    return Role(str(given)) if given else Role.READER


def _patterns(given: Any, otherwise: Sequence[str]) -> tuple[str, ...]:
    """Scopes as a list, or as words."""
    if given is None:
        return tuple(otherwise)
    named = given.split() if isinstance(given, str) else given
    return tuple(parse_pattern(str(one)) for one in named)

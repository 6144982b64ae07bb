"""Verifies OpenID Connect tokens and builds the principal from their claims."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

import jwt
import structlog

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.access.scopes import normalize_agent_name, parse_pattern, slugify
from reverie.domain.core.errors import InvalidInput, Unauthenticated, Unavailable
from reverie.runtime.auth.authentication import TenantLookup

log = structlog.get_logger()

_T = TypeVar("_T")

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signature algorithms with a private key: no `none`, and none with a shared secret."""
_LEEWAY = 30.0
_LATEST_EXPIRY = 4_102_444_800.0
"""The year 2100: a later expiry may be no date."""
_REFRESH_SECONDS = 600
_TRUSTED_SECONDS = 3600.0
"""Keys are fetched again after the first period, and used up to the second if that fails."""
_FETCH_SECONDS = 5
_RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class OidcProvider:
    """An identity provider whose tokens are accepted, and the mapping of their claims.

    `scopes`: the read and write scopes of a token that names none.
    """

    issuer: str
    audience: str
    jwks_url: str
    scopes: tuple[str, ...] = ()
    tenant_claim: str = "tenant"
    role_claim: str = "role"
    reads_claim: str = "reads"
    writes_claim: str = "writes"


class OidcTokenVerifier:
    """Reads tokens. The provider's keys are fetched when an unknown one is named, then kept.

    One request at a time asks the provider, so that one that hangs holds up nobody whose key is
    known, and takes no threads from others.
    """

    def __init__(self, provider: OidcProvider, find_tenant: TenantLookup) -> None:
        self._provider, self._find_tenant = provider, find_tenant
        self._jwks_client = jwt.PyJWKClient(
            provider.jwks_url, cache_jwk_set=False, timeout=_FETCH_SECONDS
        )
        self._cached_keys: list[jwt.PyJWK] = []
        self._requested_at, self._fetched_at = -_RETRY_SECONDS, -_TRUSTED_SECONDS
        self._fetch_lock = asyncio.Lock()

    async def verify(self, token: str) -> Principal:
        """Returns the token's principal.

        Raises `Unauthenticated`, or `Unavailable` without the keys.
        """
        with _refusals():
            claims = await self._read_claims(token, self._provider.audience)
            return await self._build_principal(claims)

    async def check_id_token(self, token: str, client_id: str, nonce: str) -> None:
        """Raises `Unauthenticated` unless the provider made the token for this sign-in.

        `nonce`: the random text that was sent along with the person. Raises `Unavailable` without
        the provider's keys.
        """
        with _refusals():
            claims = await self._read_claims(token, client_id)
            if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
                raise InvalidInput("nonce", "is of another sign-in")
            if claims.get("azp", client_id) != client_id:
                raise InvalidInput("azp", "is another client")

    async def _read_claims(self, token: str, audience: str) -> Mapping[str, Any]:
        key = await self._signing_key(jwt.get_unverified_header(token).get("kid") or "")
        return await asyncio.to_thread(self._claims, token, key, audience)

    def _claims(self, token: str, key: jwt.PyJWK, audience: str) -> Mapping[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=audience,
            issuer=self._provider.issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    async def _signing_key(self, kid: str) -> jwt.PyJWK:
        """Returns the key of that name; fetches the keys for an unknown name, but rarely.

        Any client may send the name of a key that does not exist.
        """
        key = self._find_cached_key(kid)
        if key is None or (self._is_outdated() and not self._fetch_lock.locked()):
            async with self._fetch_lock:
                await self._refresh_keys(kid)
            key = self._find_cached_key(kid)
        if key is None and self._fetched_at < self._requested_at:
            raise Unavailable("the identity provider", "its keys cannot be fetched")
        if key is None:
            raise jwt.InvalidKeyError
        return key

    def _find_cached_key(self, kid: str) -> jwt.PyJWK | None:
        if time.monotonic() - self._fetched_at > _TRUSTED_SECONDS:
            return None
        return self._jwks_client.match_kid(self._cached_keys, kid)

    def _is_outdated(self) -> bool:
        return time.monotonic() - self._fetched_at > _REFRESH_SECONDS

    async def _refresh_keys(self, kid: str) -> None:
        """Fetches the keys, unless another call did so concurrently or they were requested just
        now.
        """
        is_needed = self._is_outdated() or self._find_cached_key(kid) is None
        if not is_needed or time.monotonic() - self._requested_at < _RETRY_SECONDS:
            return
        self._requested_at = time.monotonic()
        try:
            self._cached_keys = await asyncio.to_thread(self._jwks_client.get_signing_keys)
        except (jwt.PyJWKClientError, jwt.PyJWKSetError, ValueError) as error:
            log.warning("jwks_fetch_failed", reason=type(error).__name__)
        else:
            self._fetched_at = time.monotonic()

    async def _build_principal(self, claims: Mapping[str, Any]) -> Principal:
        provider = self._provider
        name = _find_claim(claims, provider.tenant_claim)
        tenant_id = await self._find_tenant(str(name)) if name else None
        if tenant_id is None:
            raise InvalidInput(provider.tenant_claim, "names no tenant that there is")
        return Principal(
            tenant=tenant_id,
            tenant_name=str(name),
            key_id=str(uuid5(NAMESPACE_URL, f"{provider.issuer} {claims['sub']}")),
            role=_read_claim(claims, provider.role_claim, _parse_role),
            reads=_read_claim(
                claims, provider.reads_claim, lambda value: _parse_scopes(value, provider.scopes)
            ),
            writes=_read_claim(
                claims, provider.writes_claim, lambda value: _parse_scopes(value, provider.scopes)
            ),
            project=_read_claim(
                claims, "project", lambda name: slugify(str(name)) if name else None
            ),
            agent=_read_claim(
                claims, "agent", lambda name: normalize_agent_name(str(name)) if name else None
            ),
            user=_read_claim(claims, "user", lambda name: slugify(str(name)) if name else None),
            token_expires_at=_read_claim(
                claims,
                "exp",
                lambda at: datetime.fromtimestamp(min(float(at) + _LEEWAY, _LATEST_EXPIRY), UTC),
            ),
        )


@contextmanager
def _refusals() -> Iterator[None]:
    """Raises `Unauthenticated` for a token that cannot be read; the log says why."""
    try:
        yield
    except InvalidInput as error:
        log.info("token_rejected", reason=error.reason, claim=error.field)
        raise Unauthenticated from None
    except (jwt.PyJWTError, ValueError) as error:
        log.info("token_rejected", reason=type(error).__name__)
        raise Unauthenticated from None


def _read_claim(claims: Mapping[str, Any], path: str, parse: Callable[[Any], _T]) -> _T:
    """Reads a claim. Raises `InvalidInput` with the claim's name, never its value."""
    try:
        return parse(_find_claim(claims, path))
    except (InvalidInput, TypeError, ValueError):
        raise InvalidInput(path, "cannot be read") from None


def _find_claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, or by a path into others, as `realm_access.tenant`."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _parse_role(value: Any) -> KeyRole:
    return KeyRole(str(value)) if value else KeyRole.READER


def _parse_scopes(value: Any, default: Sequence[str]) -> tuple[str, ...]:
    """Scopes as a list, or as words."""
    if value is None:
        return tuple(default)
    names = value.split() if isinstance(value, str) else value
    return tuple(parse_pattern(str(name)) for name in names)

"""Signs people in at an identity provider: authorization code with PKCE, state and nonce.

OpenID Connect Core 1.0, section 3.1; RFC 7636 (PKCE); RFC 9207 (the issuer in the answer).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from reverie.contracts.tls import create_tls_context
from reverie.domain.core.errors import Misconfigured, Unauthenticated, Unavailable
from reverie.runtime.auth.oidc import OidcTokenVerifier
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.settings.field_types import secret_text
from reverie.runtime.settings.settings import Settings
from reverie_services.console.requests import (
    HOME,
    build_cookie,
    local_path,
    read_cookies,
    redirect,
)

CALLBACK = f"{HOME}/sign-in/callback"
ATTEMPT_COOKIE = "reverie_sign_in"
ATTEMPT_SECONDS = 10 * 60
_TOKEN_SECONDS = 10.0
_MAX_ANSWER = 256 * 1024


@dataclass(frozen=True)
class OidcClient:
    """The console as a client of the provider. Without a secret it is a public one."""

    issuer: str
    client_id: str
    client_secret: str | None
    authorize_url: str
    token_url: str
    ca_file: Path | None


@dataclass(frozen=True)
class SignInAttempt:
    """What the browser keeps in a cookie while the person is at the provider.

    Three random texts, and the page to show afterwards.
    """

    state: str
    nonce: str
    verifier: str
    target: str

    @classmethod
    def start(cls, target: str) -> SignInAttempt:
        """A new attempt."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, target)

    @classmethod
    def parse(cls, text: str) -> SignInAttempt:
        """Reads the cookie. Raises `Unauthenticated` if it is no attempt."""
        try:
            state, nonce, verifier, target = text.split(".")
            path = urlsafe_b64decode(target.encode()).decode()
        except ValueError:
            raise Unauthenticated from None
        if not (state and nonce and verifier):
            raise Unauthenticated
        return cls(state, nonce, verifier, local_path(path))

    def __str__(self) -> str:
        target = urlsafe_b64encode(self.target.encode()).decode()
        return ".".join([self.state, self.nonce, self.verifier, target])

    @property
    def challenge(self) -> str:
        """The PKCE challenge, which the provider compares with the verifier."""
        digest = sha256(self.verifier.encode()).digest()
        return urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass(frozen=True)
class OidcSignIn:
    """The sign-in at a provider."""

    client: OidcClient
    verifier: OidcTokenVerifier

    def start(self, request: IncomingRequest, secure: bool) -> OutgoingResponse:
        """Sends the person to the provider's page."""
        attempt = SignInAttempt.start(local_path(request.url.query.get("next")))
        page = URL(self.client.authorize_url).update_query(
            response_type="code",
            client_id=self.client.client_id,
            redirect_uri=_callback_url(request, secure),
            scope="openid",
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=attempt.challenge,
            code_challenge_method="S256",
        )
        # Lax, not Strict: the provider's page sends the person back.
        cookie = build_cookie(ATTEMPT_COOKIE, str(attempt), ATTEMPT_SECONDS, secure, "Lax")
        return redirect(str(page), cookie)

    async def finish(self, request: IncomingRequest, secure: bool) -> tuple[list[str], str]:
        """The bearer tokens of the person, the preferred one first, and the page to show.

        Raises `Unauthenticated` for an answer to another attempt, and `Unavailable`.
        """
        query = request.url.query
        attempt = SignInAttempt.parse(read_cookies(request.headers).get(ATTEMPT_COOKIE, ""))
        is_own = hmac.compare_digest(query.get("state", "").encode(), attempt.state.encode())
        if not is_own or query.get("iss", self.client.issuer) != self.client.issuer:
            raise Unauthenticated
        if not (code := query.get("code")):
            raise Unauthenticated
        answer = await self._exchange(code, attempt, _callback_url(request, secure))
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(id_token, str):
            raise Unauthenticated
        await self.verifier.check_id_token(id_token, self.client.client_id, attempt.nonce)
        tokens = [token for token in (access_token, id_token) if isinstance(token, str)]
        return tokens, attempt.target

    async def _exchange(self, code: str, attempt: SignInAttempt, callback: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "client_id": self.client.client_id,
            "code_verifier": attempt.verifier,
        }
        if self.client.client_secret is not None:
            form["client_secret"] = self.client.client_secret
        connector = aiohttp.TCPConnector(ssl=create_tls_context(self.client.ca_file))
        try:
            async with (
                asyncio.timeout(_TOKEN_SECONDS),
                aiohttp.ClientSession(connector=connector) as http,
                http.post(self.client.token_url, data=form, allow_redirects=False) as answer,
            ):
                body = await _read_limited(answer.content)
                if answer.status >= 500:
                    raise Unavailable("the identity provider", "it gives no token now")
                if answer.status != 200:
                    raise Unauthenticated
        except (aiohttp.ClientError, TimeoutError):
            raise Unavailable("the identity provider", "try again in a moment") from None
        try:
            parsed = json.loads(body)
        except ValueError:
            raise Unauthenticated from None
        return parsed if isinstance(parsed, dict) else {}


async def _read_limited(stream: aiohttp.StreamReader) -> bytes:
    body = b""
    async for chunk in stream.iter_chunked(_MAX_ANSWER):
        body += chunk
        if len(body) > _MAX_ANSWER:
            raise Unauthenticated
    return body


def _callback_url(request: IncomingRequest, secure: bool) -> str:
    """The URL to which the provider sends people back, on the request's host, which is checked."""
    scheme = "https" if secure else "http"
    return f"{scheme}://{request.headers.get('Host', '')}{CALLBACK}"


def create_oidc_sign_in(settings: Settings, verifier: OidcTokenVerifier | None) -> OidcSignIn:
    """The sign-in by the provider's page. Raises `Misconfigured` if a part of it is not set."""
    if (
        verifier is None
        or not settings.oidc_issuer
        or not settings.oidc_client_id
        or not settings.oidc_authorize_url
        or not settings.oidc_token_url
    ):
        needs = "needs oidc_issuer, oidc_authorize_url and oidc_token_url beside it"
        raise Misconfigured("oidc_client_id", needs)
    client = OidcClient(
        settings.oidc_issuer,
        settings.oidc_client_id,
        secret_text(settings.oidc_client_secret),
        settings.oidc_authorize_url,
        settings.oidc_token_url,
        settings.trusted_ca_file,
    )
    return OidcSignIn(client, verifier)

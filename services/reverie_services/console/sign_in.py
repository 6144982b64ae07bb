"""Signs people in by a key or by a link that works once, and finds the session of a request."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cachetools import TTLCache
from multidict import CIMultiDict, MultiMapping
from yarl import URL

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound, QuotaExceeded, Unauthenticated
from reverie.runtime.auth.authentication import Authenticator, bearer_token, parse_bearer
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.streaming import check_body_size
from reverie.store.platform.console_sessions import (
    ConsoleSessionStore,
    ConsoleToken,
    parse_token,
)
from reverie_services.console.oidc_sign_in import ATTEMPT_COOKIE, OidcSignIn
from reverie_services.console.rendering import render_template
from reverie_services.console.requests import (
    HOME,
    build_cookie,
    html_response,
    local_path,
    read_cookies,
    redirect,
)

SESSION_COOKIE = "reverie_console"
LANGUAGE_COOKIE = "reverie_language"
SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 15 * 60
MAX_FAILURES = 20
"""The failed sign-ins of an address within a minute after which further ones are refused."""
MAX_ADDRESSES = 10_000
_PERIOD = 60.0


@dataclass(frozen=True)
class AuditedForm:
    """A form as the audit log names it."""

    name: str
    method: str = "POST"
    read_only: bool = False
    delegates: bool = False


SIGN_IN = AuditedForm("POST /console/sign-in")
LINK = AuditedForm("POST /console/links")
PROVIDER_SIGN_IN = AuditedForm("GET /console/sign-in/callback")
KEY_FAILED, PROVIDER_FAILED = FAILURES = (
    "That key or link does not work. A link works once, for 15 minutes.",
    "The identity provider did not sign you in. Try again.",
)


class SignInLimiter:
    """Counts the failed sign-ins of each address, in a minute from the first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: TTLCache[str, list[float]] = TTLCache(MAX_ADDRESSES, _PERIOD, clock)

    def check(self, address: str) -> None:
        """Raises `QuotaExceeded` for an address that failed too often."""
        failures = self._failures.get(address, [])
        if len(failures) >= MAX_FAILURES:
            wait = failures[0] + _PERIOD - self._clock()
            raise QuotaExceeded("address", "failed sign-ins", MAX_FAILURES, max(1, math.ceil(wait)))

    def record_failure(self, address: str) -> None:
        """Counts one more."""
        failures = self._failures.get(address)
        if failures is None:
            self._failures[address] = [self._clock()]
        else:
            failures.append(self._clock())


@dataclass(frozen=True)
class SignIn:
    """The sign-in of one request. `secure`: cookies go over https only."""

    sessions: ConsoleSessionStore
    authenticate: Authenticator
    limiter: SignInLimiter
    oidc: OidcSignIn | None
    secure: bool

    async def find_session(
        self, cookies: Mapping[str, str]
    ) -> tuple[ConsoleToken | None, str | None]:
        """The token in the cookie, and the API key that it stands for."""
        token = parse_token(cookies.get(SESSION_COOKIE, ""))
        return token, None if token is None else await self.sessions.find_key(token)

    async def show(self, url: URL, language: str) -> OutgoingResponse:
        """The sign-in page; for a link, the page with its button.

        Only its button uses a link up: programs that preview links do not press it.
        """
        return self._render(200, language, local_path(url.query.get("next")), url.query.get("code"))

    def _render(
        self, status: int, language: str, target: str, code: str | None = None, failed: str = ""
    ) -> OutgoingResponse:
        values = {
            "next": target,
            "code": code,
            "failed": failed,
            "oidc": self.oidc,
            "request": None,
        }
        return html_response(status, render_template("sign_in.html", language, values))

    async def submit(
        self, request: IncomingRequest, form: MultiMapping[str], language: str
    ) -> OutgoingResponse:
        """Signs in with the posted key or code; the session gets a new id each time."""
        self.limiter.check(request.remote)
        target = local_path(form.get("next"))
        api_key = form.get("key", "").strip()
        code = parse_token(form.get("code", "").strip())
        if code is not None:
            api_key = await self.sessions.redeem(code, is_link=True) or ""
        try:
            principal = await self._authenticate(api_key)
        except Unauthenticated:
            self.limiter.record_failure(request.remote)
            return self._render(401, language, target, failed=KEY_FAILED)
        cookie = await self._open_session(request, SIGN_IN, principal, api_key)
        return redirect(target, cookie)

    async def go_to_provider(self, request: IncomingRequest) -> OutgoingResponse:
        """Redirects the person to the identity provider."""
        if self.oidc is None:
            raise NotFound("page", "sign-in/oidc")
        return self.oidc.start(request, self.secure)

    async def return_from_provider(
        self, request: IncomingRequest, language: str
    ) -> OutgoingResponse:
        """Signs in a person who returns from the identity provider."""
        if self.oidc is None:
            raise NotFound("page", "sign-in/callback")
        self.limiter.check(request.remote)
        try:
            tokens, target = await self.oidc.finish(request, self.secure)
            principal, token = await self._find_accepted(tokens)
        except Unauthenticated:
            self.limiter.record_failure(request.remote)
            return self._render(401, language, HOME, failed=PROVIDER_FAILED)
        cookie = await self._open_session(request, PROVIDER_SIGN_IN, principal, token)
        # A redirect would still count as the provider's, whose pages send no strict cookie.
        page = render_template("signed_in.html", language, {"request": None, "next": target})
        response = html_response(200, page)
        for each in (cookie, build_cookie(ATTEMPT_COOKIE, "", 0, self.secure, "Lax")):
            response.headers.add("Set-Cookie", each)
        return response

    async def _find_accepted(self, tokens: Sequence[str]) -> tuple[Principal, str]:
        """The first token that is accepted: providers differ in which one names our audience."""
        for token in tokens:
            with suppress(Unauthenticated):
                return await self._authenticate(token), token
        raise Unauthenticated

    async def _open_session(
        self, request: IncomingRequest, form: AuditedForm, principal: Principal, api_key: str
    ) -> str:
        """Ends the browser's session before, and returns the cookie of a new one."""
        request.authenticated = (form, principal)
        previous = parse_token(read_cookies(request.headers).get(SESSION_COOKIE, ""))
        if previous is not None:
            await self.sessions.redeem(previous, is_link=False)
        token = await self.sessions.create(principal.tenant, api_key, SESSION_SECONDS)
        return build_cookie(SESSION_COOKIE, str(token), SESSION_SECONDS, self.secure)

    async def create_link(self, request: IncomingRequest) -> OutgoingResponse:
        """The path of a link that signs in once, for the holder of the key in the headers."""
        check_body_size(request, 0, "body_limit")
        principal = await self.authenticate(request.headers)
        request.authenticated = (LINK, principal)
        api_key = bearer_token(request.headers)
        assert api_key is not None
        token = await self.sessions.create(principal.tenant, api_key, LINK_SECONDS, is_link=True)
        body = {"path": f"{HOME}/sign-in?code={token}", "seconds": LINK_SECONDS}
        headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
        return OutgoingResponse(201, CIMultiDict(headers), json.dumps(body).encode())

    async def _authenticate(self, api_key: str) -> Principal:
        header = f"Bearer {api_key}"
        if parse_bearer(header) is None:
            raise Unauthenticated
        return await self.authenticate({"Authorization": header})

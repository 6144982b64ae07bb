"""Answers every request below `/console`: files, sign-in, pages, forms, live updates."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import structlog
from multidict import CIMultiDict
from yarl import URL

from reverie.contracts.base import Problem
from reverie.contracts.problems import build_problem, problem_from_error
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import QuotaExceeded, ReverieError, Unauthenticated
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.mcp.rest_calls import RestCallError
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.store.platform.console_sessions import ConsoleSessionStore, ConsoleToken
from reverie_services.console.action_forms import perform, show_action
from reverie_services.console.actions import ACTIONS
from reverie_services.console.chat_stream import stream_chat
from reverie_services.console.live import LiveStream, LiveStreams, stream_changes
from reverie_services.console.oidc_sign_in import OidcSignIn
from reverie_services.console.page_request import PageRequest
from reverie_services.console.pages import PAGES, find_page
from reverie_services.console.pages.ask import save_golden_set
from reverie_services.console.rendering import (
    LANGUAGES,
    choose_language,
    render_template,
)
from reverie_services.console.requests import (
    HOME,
    SECURITY_HEADERS,
    build_cookie,
    html_response,
    is_same_origin,
    local_path,
    read_cookies,
    read_form,
    redirect,
)
from reverie_services.console.sign_in import LANGUAGE_COOKIE, SignIn, SignInLimiter
from reverie_services.console.uploads import MULTIPART, read_upload
from reverie_services.in_process_rest import InProcessRestClient

log = structlog.get_logger()

STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LANGUAGE_SECONDS = 365 * 86_400
MAX_UPLOADS = 4
"""Forms with files that are read concurrently: each may be as large as a message to agents."""


@dataclass(frozen=True)
class Console:
    """The console of a gateway."""

    dispatcher: Dispatcher
    authenticate: Authenticator
    sessions: ConsoleSessionStore
    load_redactor: RedactorLoader
    over_tls: bool
    message_limit: int
    oidc: OidcSignIn | None = None
    streams: LiveStreams = field(default_factory=LiveStreams)
    limiter: SignInLimiter = field(default_factory=SignInLimiter)
    uploads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_UPLOADS))

    async def handle(self, request: IncomingRequest) -> OutgoingResponse:
        """The answer to any request below `/console`."""
        path = request.url.path.removeprefix(HOME).strip("/")
        if request.method not in {"GET", "HEAD", "POST"}:
            return self._show_problem(request, build_problem("method_not_allowed", "GET or POST"))
        if path.startswith("static/"):
            return _static_file(request, path.removeprefix("static/"))
        try:
            return await self._handle(request, path)
        except RestCallError as error:
            return self._show_problem(request, error.problem)
        except QuotaExceeded as error:
            response = self._show_problem(request, problem_from_error(error))
            response.headers["Retry-After"] = str(math.ceil(error.retry_after))
            return response
        except ReverieError as error:
            return self._show_problem(request, problem_from_error(error))
        except ConnectionResetError:
            raise
        except Exception:
            log.exception("request_failed", method=request.method, route=request.route_pattern)
            problem = build_problem("internal", "something failed inside")
            return self._show_problem(request, problem)

    async def _handle(self, request: IncomingRequest, path: str) -> OutgoingResponse:
        cookies = read_cookies(request.headers)
        secure = self._is_secure(request)
        sign_in = SignIn(self.sessions, self.authenticate, self.limiter, self.oidc, secure)
        if path == "links" and request.method == "POST":
            return await sign_in.create_link(request)
        if request.method == "POST" and not is_same_origin(request.headers):
            return self._show_problem(request, build_problem("forbidden", "another site sent this"))
        if path == "sign-in":
            language = self._language(request)
            if request.method == "POST":
                return await sign_in.submit(request, await read_form(request), language)
            return await sign_in.show(request.url, language)
        if path == "sign-in/oidc" and request.method != "POST":
            return await sign_in.go_to_provider(request)
        if path == "sign-in/callback" and request.method != "POST":
            return await sign_in.return_from_provider(request, self._language(request))
        token, api_key = await sign_in.find_session(cookies)
        if token is None or api_key is None:
            return _ask_to_sign_in(request)
        page_request = await self._open_request(request, token, api_key)
        if page_request is None:
            return _ask_to_sign_in(request)
        if request.method == "POST":
            posted = await self._read_form(request, page_request)
            return await self._post(request, path, posted, token)
        return await self._get(request, path, page_request, token)

    async def _read_form(self, request: IncomingRequest, page_request: PageRequest) -> PageRequest:
        """The request with the posted form. Only a message to agents has files."""
        content_type = request.headers.get("Content-Type", "")
        if not (content_type.startswith(MULTIPART) and request.url.path == f"{HOME}/do/say"):
            return replace(page_request, form=await read_form(request))
        async with self.uploads:
            form, files = await read_upload(request, self.message_limit)
        return replace(page_request, form=form, files=files)

    async def _open_request(
        self, request: IncomingRequest, token: ConsoleToken, api_key: str
    ) -> PageRequest | None:
        """The request of the signed-in person; None if their key is no longer valid."""
        headers = {"Authorization": f"Bearer {api_key}", "User-Agent": "reverie console"}
        try:
            principal: Principal = await self.authenticate(headers)
        except Unauthenticated:
            return None
        return PageRequest(
            url=request.url,
            principal=principal,
            rest=InProcessRestClient(self.dispatcher, headers),
            language=self._language(request),
            csrf_token=token.derive("form").hex(),
            load_redactor=self.load_redactor,
        )

    async def _get(
        self, request: IncomingRequest, path: str, page_request: PageRequest, token: ConsoleToken
    ) -> OutgoingResponse:
        if path.startswith("live/"):
            return await self._stream(request, path.removeprefix("live/"), page_request, token)
        if path.startswith("do/"):
            name = path.removeprefix("do/")
            if name in ACTIONS:
                values = await show_action(page_request, ACTIONS[name])
                return _render(request, page_request, "action.html", values)
            return self._show_problem(request, build_problem("not_found", "no such action"))
        found = find_page(path)
        if found is None:
            return self._show_problem(request, build_problem("not_found", "no such page"))
        page, path_values = found
        request.route_pattern = f"{HOME}/{page.path}".rstrip("/")
        result = await page.load(replace(page_request, values=path_values))
        if isinstance(result, OutgoingResponse):
            return result
        return _render(request, page_request, page.template, {"current": page.section, **result})

    async def _stream(
        self, request: IncomingRequest, name: str, page_request: PageRequest, token: ConsoleToken
    ) -> OutgoingResponse:
        async def is_signed_in() -> bool:
            return await self.sessions.find_key(token) is not None

        stream = LiveStream(page_request.principal.key_id, token)
        if name == "chat":
            last_event = request.headers.get("Last-Event-ID", "")
            return await stream_chat(page_request, last_event, self.streams, stream, is_signed_in)
        return await stream_changes(page_request, name, self.streams, stream, is_signed_in)

    async def _post(
        self, request: IncomingRequest, path: str, page_request: PageRequest, token: ConsoleToken
    ) -> OutgoingResponse:
        if page_request.form.get("csrf") != page_request.csrf_token:
            detail = "this form is too old or of another sign-in: reload the page"
            return self._show_problem(request, build_problem("forbidden", detail))
        if path == "sign-out":
            await self.sessions.redeem(token, is_link=False)
            self.streams.end(token)
            return redirect(f"{HOME}/sign-in", self._cookie(request, "reverie_console", "", 0))
        if path == "language":
            language = page_request.form.get("language", "")
            cookie = language if language in LANGUAGES else "en"
            target = local_path(page_request.form.get("next"))
            return redirect(
                target, self._cookie(request, LANGUAGE_COOKIE, cookie, _LANGUAGE_SECONDS)
            )
        if path == "golden-set":
            return await save_golden_set(page_request)
        name = path.removeprefix("do/")
        if path.startswith("do/") and name in ACTIONS:
            request.route_pattern = f"{HOME}/do/{name}"
            result = await perform(page_request, ACTIONS[name])
            if isinstance(result, OutgoingResponse):
                return result
            return _render(request, page_request, ACTIONS[name].result_template, result)
        return self._show_problem(request, build_problem("not_found", "no such form"))

    def _language(self, request: IncomingRequest) -> str:
        cookie = read_cookies(request.headers).get(LANGUAGE_COOKIE)
        return choose_language(cookie, request.headers.get("Accept-Language", ""))

    def _is_secure(self, request: IncomingRequest) -> bool:
        return self.over_tls or request.headers.get("X-Forwarded-Proto", "").lower() == "https"

    def _cookie(self, request: IncomingRequest, name: str, value: str, seconds: int) -> str:
        return build_cookie(name, value, seconds, self._is_secure(request))

    def _show_problem(self, request: IncomingRequest, problem: Problem) -> OutgoingResponse:
        request.problem_code = problem.code
        values = {"problem": problem, "request": None}
        page = render_template("problem.html", self._language(request), values)
        return html_response(problem.status, page)


def _render(
    request: IncomingRequest, page_request: PageRequest, template: str, values: Mapping[str, Any]
) -> OutgoingResponse:
    page = render_template(
        template,
        page_request.language,
        {
            "request": page_request,
            "query": request.url.query,
            "sections": PAGES.sections,
            "done": ACTIONS.get(request.url.query.get("done", "")),
            "action_titles": {name: action.title for name, action in ACTIONS.items()},
            "done_count": page_request.number("count", 1, 1_000),
            **values,
        },
    )
    return html_response(200, page)


def _ask_to_sign_in(request: IncomingRequest) -> OutgoingResponse:
    target = (
        str(request.url) if request.method != "POST" and "/live/" not in request.url.path else HOME
    )
    return redirect(str(URL(f"{HOME}/sign-in").with_query(next=target)))


@cache
def _load_static(name: str) -> tuple[bytes, str, str] | None:
    """The content, media type and ETag of a file; None if there is none of that name."""
    allowed = {"console.css", "console.js", "chat.js", "graph.js", "logo.svg"}
    vendored = {"htmx.min.js", "cytoscape.min.js", "uPlot.iife.min.js", "uPlot.min.css"}
    if name not in allowed | {f"vendor/{each}" for each in vendored}:
        return None
    content = (files(__package__) / "static" / name).read_bytes()
    media_type = STATIC_TYPES[name[name.rindex(".") :]]
    return content, media_type, f'"{sha256(content).hexdigest()[:16]}"'


def _static_file(request: IncomingRequest, name: str) -> OutgoingResponse:
    found = _load_static(name)
    if found is None:
        return OutgoingResponse(404, CIMultiDict({"Content-Type": "text/plain"}), b"no such file")
    content, media_type, tag = found
    headers = CIMultiDict(
        {
            **SECURITY_HEADERS,
            "Content-Type": f"{media_type}; charset=utf-8",
            "Cache-Control": "public, max-age=300",
            "ETag": tag,
        }
    )
    if request.headers.get("If-None-Match") == tag:
        return OutgoingResponse(304, headers)
    return OutgoingResponse(200, headers, content)

"""One door for agents: calls of other services are passed on to them by path prefix."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import structlog
from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from opentelemetry import trace
from structlog.contextvars import bind_contextvars
from yarl import URL

from reverie.contracts.trust import trusting
from reverie.domain.errors import ReverieError, Unavailable
from reverie.domain.idempotency import StoredReply
from reverie.runtime.admission import Admission
from reverie.runtime.auth import bearer_of
from reverie.runtime.client_meters import ClientMeters
from reverie.runtime.endless import until_over
from reverie.runtime.observe import ASKED, TENANT
from reverie.runtime.positions import POSITION
from reverie.runtime.problems import route_of
from reverie.runtime.routes import read_body
from reverie.runtime.sockets import PATH_END, Asked, Refused, speak
from reverie.runtime.streams import taken
from reverie.runtime.telemetry import inject_headers, mark_failed

log = structlog.get_logger()

Body = AsyncIterator[bytes] | bytes | None

PassedOn = Callable[[Mapping[str, str], Mapping[str, str]], None]
SESSION = web.AppKey("SESSION", ClientSession)
PASSED_ON: web.AppKey[PassedOn] = web.AppKey("PASSED_ON", Callable)  # type: ignore[arg-type]
_CONNECT_SECONDS = 2.0
_SILENCE_SECONDS = 60.0
_SHORT_BODY = 16 * 1024
_SENT_ON = (
    "Authorization",
    "Content-Type",
    "Accept",
    "Accept-Encoding",
    "Idempotency-Key",
    "Last-Event-ID",
    "If-Match",
    "If-None-Match",
    POSITION,
    "User-Agent",
    "X-GitHub-Delivery",
    "X-GitHub-Event",
    "X-Gitlab-Event",
    "X-Gitlab-Event-UUID",
    "X-Gitlab-Token",
    "X-Hub-Signature-256",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
)
_SENT_BACK = (
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "ETag",
    "Location",
    "Allow",
    "Retry-After",
    "WWW-Authenticate",
    "Idempotent-Replayed",
    "Cache-Control",
    "Link",
    "RateLimit",
    "RateLimit-Policy",
    "Vary",
    POSITION,
)


@dataclass(frozen=True)
class Forward:
    """All calls at or below `prefix` that the gateway does not answer itself go to `url`.

    With a `stream_limit` (bytes) a body is passed on as it comes, and `seconds` is how long the
    call may take. The answers of an `endless` one never end by themselves. `limit`: bytes of a
    whole body, where they are not those of all calls, and the setting they are.
    """

    prefix: str
    service: str
    url: str
    stream_limit: int = 0
    seconds: float = 0.0
    endless: bool = False
    limit: int = 0
    limit_setting: str = "body_limit"


@dataclass(frozen=True)
class Passing:
    """What bounds and measures all that is passed on; `admit` makes the door to a service.

    `doors`: gets who lets in, by handler. `passed_on` is told the headers of each call and of its
    answer.
    """

    body_limit: int
    seconds: float
    meters: ClientMeters
    admit: Callable[[str], Admission]
    doors: dict[object, Admission]
    passed_on: PassedOn = lambda _asked, _answered: None
    authority: Path | None = None


def add_forwards(app: web.Application, forwards: Sequence[Forward], passing: Passing) -> None:
    """Adds the routes, the longest prefix first, and the client session behind them."""
    app[PASSED_ON] = passing.passed_on
    app.cleanup_ctx.append(partial(_session, passing))
    services = {name: passing.admit(name) for name in sorted({one.service for one in forwards})}
    for forward in sorted(forwards, key=lambda one: -len(one.prefix)):
        door = services[forward.service]
        handler = partial(_pass_on, forward, door, passing.body_limit)
        if not lasting(forward):
            passing.doors[handler] = door
        app.router.add_route("*", forward.prefix + "{tail:(/.*)?}", handler)


def lasting(forward: Forward) -> bool:
    """Whether a call may go on for so long that it takes no place among the others."""
    return forward.endless or forward.stream_limit > 0


async def _session(passing: Passing, app: web.Application) -> AsyncIterator[None]:
    timeout = ClientTimeout(total=passing.seconds, sock_connect=_CONNECT_SECONDS)
    # How many are under way at once is bounded where they are let in.
    async with ClientSession(
        timeout=timeout,
        connector=TCPConnector(limit=0, ssl=trusting(passing.authority)),
        auto_decompress=False,
        # Who asks for no packing gets none, nor is one named that is not known.
        skip_auto_headers=("Accept-Encoding", "User-Agent"),
        cookie_jar=DummyCookieJar(),
        trace_configs=[passing.meters.trace()],
    ) as session:
        app[SESSION] = session
        yield


async def _pass_on(
    forward: Forward, door: Admission, body_limit: int, request: web.Request
) -> web.StreamResponse:
    if forward.endless and request.path.endswith(PATH_END):
        return await speak(request, partial(_opened, forward, request), _SILENCE_SECONDS)
    refused: list[ReverieError] = []
    if forward.stream_limit:
        body: Body = _noting(taken(request, forward.stream_limit, "import_limit"), refused)
    else:
        limit = forward.limit or body_limit
        body = await read_body(request, limit, forward.limit_setting) or None
    tracer = trace.get_tracer("reverie.http")
    with tracer.start_as_current_span(
        f"{request.method} {route_of(request)}",
        kind=trace.SpanKind.CLIENT,
        attributes={"http.request.method": request.method, "peer.service": forward.service},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            async with nullcontext() if lasting(forward) else door.turn(route_of(request)):
                answer = await _ask(forward, request, body)
        except (ClientError, TimeoutError, OSError) as error:
            mark_failed(span, type(error).__name__)
            # The client hides why a body ended early.
            raise (refused[0] if refused else _down(forward, error)) from error
        span.set_attribute("http.response.status_code", answer.status)
    if tenant := answer.headers.get(TENANT):
        bind_contextvars(tenant=tenant)
    request.app[PASSED_ON](request.headers, answer.headers)
    async with answer:
        if _is_here(request, answer):
            return await _whole(answer)
        pieces = answer.content.iter_any()
        return await _send_back(
            request, answer, until_over(request, pieces) if forward.endless else pieces
        )


@asynccontextmanager
async def _opened(
    forward: Forward, request: web.Request, asked: Asked | None
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The stream of events whose socket is asked for, from the service that has it."""
    url = request.rel_url.with_path(request.path.removesuffix(PATH_END), keep_query=True)
    if asked is not None:
        url = url.with_query([(name, one) for name, many in asked.items() for one in many])
    headers = _headers_on(request)
    if asked is not None:
        headers.popall("Last-Event-ID", None)
    if key := bearer_of(request.headers):
        headers["Authorization"] = f"Bearer {key}"
    try:
        answer = await _ask(forward, request, None, url, headers)
    except (ClientError, TimeoutError, OSError) as error:
        raise _down(forward, error) from error
    async with answer:
        if answer.status != HTTPStatus.OK:
            told = dict(_picked(answer.headers, _SENT_BACK))
            raise Refused(StoredReply(answer.status, await answer.read(), told))
        async with aclosing(until_over(request, answer.content.iter_any())) as pieces:
            yield pieces


async def _noting(
    pieces: AsyncIterator[bytes], refused: list[ReverieError]
) -> AsyncIterator[bytes]:
    """The pieces; keeps the error that ends them."""
    try:
        async for piece in pieces:
            yield piece
    except ReverieError as error:
        refused.append(error)
        raise


async def _ask(
    forward: Forward,
    request: web.Request,
    body: Body,
    asked: URL | None = None,
    headers: CIMultiDict[str] | None = None,
) -> ClientResponse:
    path = (asked or request.rel_url).raw_path_qs
    url = URL(forward.url.rstrip("/") + path, encoded=True)
    return await request.app[SESSION].request(
        request.method,
        url,
        # A file is sent in pieces, so that a long body does not hold up the others.
        data=io.BytesIO(body) if isinstance(body, bytes) and len(body) > _SHORT_BODY else body,
        headers=headers or _headers_on(request),
        allow_redirects=False,
        trace_request_ctx=forward.service,
        **_patience(forward),
    )


def _patience(forward: Forward) -> dict[str, Any]:
    if forward.endless:
        return {"timeout": ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)}
    if not forward.seconds:
        return {}
    return {"timeout": ClientTimeout(total=forward.seconds, sock_connect=_CONNECT_SECONDS)}


def _is_here(request: web.Request, answer: ClientResponse) -> bool:
    """Whether all of an answer has come with its head, as short ones do: it leaves as one piece."""
    told = bool(answer.content_length) and request.method != "HEAD"
    return told and answer.content.is_eof() and answer.content.exception() is None


async def _whole(answer: ClientResponse) -> web.Response:
    headers = _picked(answer.headers, _SENT_BACK)
    headers.popall("Content-Length", None)
    return web.Response(status=answer.status, body=await answer.read(), headers=headers)


async def _send_back(
    request: web.Request, answer: ClientResponse, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Once the head has left, a break can only be shown by breaking off."""
    response = web.StreamResponse(status=answer.status, headers=_picked(answer.headers, _SENT_BACK))
    await response.prepare(request)
    try:
        async for chunk in pieces:
            await response.write(chunk)
        await response.write_eof()
    except (ClientError, TimeoutError, OSError) as error:
        log.warning("forward_broken", route=route_of(request), reason=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    return response


def _headers_on(request: web.Request) -> CIMultiDict[str]:
    headers = _picked(request.headers, _SENT_ON)
    headers.update({**inject_headers(), TENANT: ASKED})
    return headers


def _picked(headers: Mapping[str, str], names: Sequence[str]) -> CIMultiDict[str]:
    return CIMultiDict({name: headers[name] for name in names if name in headers})


def _down(forward: Forward, error: Exception) -> Unavailable:
    slow = isinstance(error, TimeoutError) and not isinstance(error, ConnectionTimeoutError)
    running = f"is `reverie serve {forward.service}` running?"
    return Unavailable(forward.service, "it took too long" if slow else running)

"""The gateway's reverse proxy: forwards calls to other services by path prefix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
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

from reverie.contracts.tls import create_tls_context
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.runtime.http.instrumentation import TENANT_HEADER, TENANT_REQUESTED
from reverie.runtime.http.problem_responses import route_pattern
from reverie.runtime.http.read_your_writes import POSITION_HEADER
from reverie.runtime.http.streaming import (
    check_body_size,
    has_small_body,
    read_body,
    read_chunks,
    stream_until_stopped,
)
from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie.runtime.observability.tracing import inject_headers, mark_failed

log = structlog.get_logger()

ProxiedBody = AsyncIterator[bytes] | bytes | None

ProxyObserver = Callable[[Mapping[str, str], Mapping[str, str]], None]
PROXY_SESSION = web.AppKey("SESSION", ClientSession)
PROXY_OBSERVER: web.AppKey[ProxyObserver] = web.AppKey("PASSED_ON", Callable)  # type: ignore[arg-type]
_CONNECT_SECONDS = 2.0
_READ_TIMEOUT = 60.0
_REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Accept",
    "Accept-Encoding",
    "Idempotency-Key",
    "Last-Event-ID",
    "If-Match",
    "If-None-Match",
    POSITION_HEADER,
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
_RESPONSE_HEADERS = (
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
    POSITION_HEADER,
)


@dataclass(frozen=True)
class ProxyRoute:
    """All calls at or below `prefix` that the gateway does not answer itself go to `url`.

    With a `stream_limit` (bytes) a body is passed on as it comes, and `timeout` is how long the
    call may take. The answers of an `endless` one never end by themselves. `body_limit`: bytes of a
    whole body, where they are not those of all calls, and the setting they are.
    """

    prefix: str
    service: str
    url: str
    stream_limit: int = 0
    timeout: float = 0.0
    endless: bool = False
    body_limit: int = 0
    body_limit_setting: str = "body_limit"


@dataclass(frozen=True)
class ProxyOptions:
    """Limits and metrics of all forwarded calls.

    `create_limiter` makes the concurrency limit of a service from its name. `on_proxied` gets the
    headers of each request and of its response.
    """

    body_limit: int
    timeout: float
    metrics: HttpClientMetrics
    create_limiter: Callable[[str], ConcurrencyLimiter]
    on_proxied: ProxyObserver = lambda _asked, _answered: None
    ca_file: Path | None = None


def add_proxy_routes(
    app: web.Application, proxy_routes: Sequence[ProxyRoute], options: ProxyOptions
) -> None:
    """Adds the routes, the longest prefix first, and the client session behind them."""
    app[PROXY_OBSERVER] = options.on_proxied
    app.cleanup_ctx.append(partial(_client_session, options))
    limiters = {
        name: options.create_limiter(name)
        for name in sorted({proxy_route.service for proxy_route in proxy_routes})
    }
    for proxy_route in sorted(proxy_routes, key=lambda proxy_route: -len(proxy_route.prefix)):
        limiter = limiters[proxy_route.service]
        handler = partial(_proxy_request, proxy_route, limiter, options)
        app.router.add_route("*", proxy_route.prefix + "{tail:(/.*)?}", handler)


async def _client_session(options: ProxyOptions, app: web.Application) -> AsyncIterator[None]:
    timeout = ClientTimeout(total=options.timeout, sock_connect=_CONNECT_SECONDS)
    # How many are under way at once is bounded where they are let in.
    async with ClientSession(
        timeout=timeout,
        connector=TCPConnector(limit=0, ssl=create_tls_context(options.ca_file)),
        auto_decompress=False,
        # Who asks for no packing gets none, nor is one named that is not known.
        skip_auto_headers=("Accept-Encoding", "User-Agent"),
        cookie_jar=DummyCookieJar(),
        trace_configs=[options.metrics.trace_config()],
    ) as session:
        app[PROXY_SESSION] = session
        yield


async def _proxy_request(
    proxy_route: ProxyRoute,
    limiter: ConcurrencyLimiter,
    options: ProxyOptions,
    request: web.Request,
) -> web.StreamResponse:
    body_errors: list[ReverieError] = []
    limit = proxy_route.stream_limit or proxy_route.body_limit or options.body_limit
    setting = "import_limit" if proxy_route.stream_limit else proxy_route.body_limit_setting
    check_body_size(request, limit, setting)
    if has_small_body(request):
        # A slow client holds no slot while it sends a small body.
        async with asyncio.timeout(options.timeout):
            body: ProxiedBody = await read_body(request, limit, setting) or None
    else:
        # The service authenticates the call before it reads a large body.
        body = _record_errors(read_chunks(request, limit, setting), body_errors)
    is_long_lived = proxy_route.endless or proxy_route.stream_limit > 0
    tracer = trace.get_tracer("reverie.http")
    with tracer.start_as_current_span(
        f"{request.method} {route_pattern(request)}",
        kind=trace.SpanKind.CLIENT,
        attributes={"http.request.method": request.method, "peer.service": proxy_route.service},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            async with nullcontext() if is_long_lived else limiter.acquire():
                answer = await _send_upstream(proxy_route, request, body)
        except (ClientError, TimeoutError, OSError) as error:
            mark_failed(span, type(error).__name__)
            # The client hides why a body ended early.
            raise (
                body_errors[0] if body_errors else _unavailable_error(proxy_route, error)
            ) from error
        span.set_attribute("http.response.status_code", answer.status)
    if tenant := answer.headers.get(TENANT_HEADER):
        bind_contextvars(tenant=tenant)
    request.app[PROXY_OBSERVER](request.headers, answer.headers)
    async with answer:
        if _is_complete(request, answer):
            return await _buffered_response(answer)
        chunks = answer.content.iter_any()
        return await _stream_response(
            request,
            answer,
            stream_until_stopped(request, chunks) if proxy_route.endless else chunks,
        )


async def _record_errors(
    chunks: AsyncIterator[bytes], body_errors: list[ReverieError]
) -> AsyncIterator[bytes]:
    """The pieces; keeps the error that ends them."""
    try:
        async for chunk in chunks:
            yield chunk
    except ReverieError as error:
        body_errors.append(error)
        raise


async def _send_upstream(
    proxy_route: ProxyRoute,
    request: web.Request,
    body: ProxiedBody,
) -> ClientResponse:
    url = URL(proxy_route.url.rstrip("/") + request.rel_url.raw_path_qs, encoded=True)
    return await request.app[PROXY_SESSION].request(
        request.method,
        url,
        data=body,
        headers=_upstream_headers(request),
        allow_redirects=False,
        trace_request_ctx=proxy_route.service,
        **_timeout_options(proxy_route),
    )


def _timeout_options(proxy_route: ProxyRoute) -> dict[str, Any]:
    if proxy_route.endless:
        return {"timeout": ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=_READ_TIMEOUT)}
    if not proxy_route.timeout:
        return {}
    return {"timeout": ClientTimeout(total=proxy_route.timeout, sock_connect=_CONNECT_SECONDS)}


def _is_complete(request: web.Request, answer: ClientResponse) -> bool:
    """Whether all of an answer has come with its head, as short ones do: it leaves as one piece."""
    has_length = bool(answer.content_length) and request.method != "HEAD"
    return has_length and answer.content.is_eof() and answer.content.exception() is None


async def _buffered_response(answer: ClientResponse) -> web.Response:
    headers = _pick_headers(answer.headers, _RESPONSE_HEADERS)
    headers.popall("Content-Length", None)
    return web.Response(status=answer.status, body=await answer.read(), headers=headers)


async def _stream_response(
    request: web.Request, answer: ClientResponse, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Once the head has left, a break can only be shown by breaking off."""
    response = web.StreamResponse(
        status=answer.status, headers=_pick_headers(answer.headers, _RESPONSE_HEADERS)
    )
    await response.prepare(request)
    try:
        async for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
    except (ClientError, TimeoutError, OSError) as error:
        log.warning("forward_broken", route=route_pattern(request), reason=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    return response


def _upstream_headers(request: web.Request) -> CIMultiDict[str]:
    headers = _pick_headers(request.headers, _REQUEST_HEADERS)
    headers.update({**inject_headers(), TENANT_HEADER: TENANT_REQUESTED})
    return headers


def _pick_headers(headers: Mapping[str, str], names: Sequence[str]) -> CIMultiDict[str]:
    return CIMultiDict({name: headers[name] for name in names if name in headers})


def _unavailable_error(proxy_route: ProxyRoute, error: Exception) -> Unavailable:
    timed_out = isinstance(error, TimeoutError) and not isinstance(error, ConnectionTimeoutError)
    hint = f"is `reverie serve {proxy_route.service}` running?"
    return Unavailable(proxy_route.service, "it took too long" if timed_out else hint)

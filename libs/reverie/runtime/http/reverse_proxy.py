"""The gateway's reverse proxy: forwards calls to other services by path prefix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from multidict import CIMultiDict
from opentelemetry import trace
from structlog.contextvars import bind_contextvars
from yarl import URL

from reverie.contracts.headers import POSITION_HEADER, USER_HEADER
from reverie.contracts.tls import create_tls_context
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.runtime.auth.authentication import Authenticator
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.instrumentation import TENANT_HEADER, TENANT_REQUESTED
from reverie.runtime.http.streaming import (
    check_body_size,
    has_small_body,
    read_body,
    read_chunks,
)
from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie.runtime.observability.tracing import mark_failed, trace_headers

ProxiedBody = AsyncIterator[bytes] | bytes | None

ProxyObserver = Callable[[Mapping[str, str], Mapping[str, str]], None]
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
    USER_HEADER,
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
    "Content-Disposition",
    "Content-Security-Policy",
    "Cross-Origin-Resource-Policy",
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
    """Forwards to `url` all calls at or below `prefix` that the gateway does not serve itself.

    With a `stream_limit` (bytes), a body is streamed, and `timeout` is the limit of the whole call.
    The answers of an `endless` route never end by themselves. `body_limit`: the maximum bytes of a
    whole body, if it differs from the general limit, and its setting. The calls of a `public`
    route carry no key; the service itself authenticates them, by their body.
    """

    prefix: str
    service: str
    url: str
    stream_limit: int = 0
    timeout: float = 0.0
    endless: bool = False
    body_limit: int = 0
    body_limit_setting: str = "body_limit"
    public: bool = False


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
    authenticate: Authenticator
    on_proxied: ProxyObserver = lambda _asked, _answered: None
    ca_file: Path | None = None


class ReverseProxy:
    """Forwards requests to other services."""

    def __init__(self, options: ProxyOptions) -> None:
        self._options = options
        self._http: ClientSession | None = None
        self._tracer = trace.get_tracer("reverie.http")

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Holds the connections to other services."""
        # The concurrency limits bound the number of connections.
        async with ClientSession(
            timeout=ClientTimeout(total=self._options.timeout, sock_connect=_CONNECT_SECONDS),
            connector=TCPConnector(limit=0, ssl=create_tls_context(self._options.ca_file)),
            auto_decompress=False,
            # Only the client decides about compression.
            skip_auto_headers=("Accept-Encoding", "User-Agent"),
            cookie_jar=DummyCookieJar(),
            trace_configs=[self._options.metrics.trace_config()],
        ) as self._http:
            yield

    def add_routes(self, dispatcher: Dispatcher, proxy_routes: Sequence[ProxyRoute]) -> None:
        """Adds the routes, the longest prefix first."""
        limiters = {
            name: self._options.create_limiter(name)
            for name in sorted({proxy_route.service for proxy_route in proxy_routes})
        }
        for proxy_route in sorted(proxy_routes, key=lambda proxy_route: -len(proxy_route.prefix)):
            forward = partial(self._forward, proxy_route, limiters[proxy_route.service])
            dispatcher.add_prefix(proxy_route.prefix, forward)

    async def _forward(
        self, proxy_route: ProxyRoute, limiter: ConcurrencyLimiter, request: IncomingRequest
    ) -> OutgoingResponse:
        options = self._options
        body_errors: list[ReverieError] = []
        limit = proxy_route.stream_limit or proxy_route.body_limit or options.body_limit
        setting = proxy_route.body_limit_setting
        check_body_size(request, limit, setting)
        async with asyncio.timeout(options.timeout):
            if not proxy_route.public:
                # Nothing is read before the key is checked, and no other service is asked.
                await options.authenticate(request.headers)
            # The signature of a body may be refused before the body comes.
            if has_small_body(request) and not (proxy_route.public and request.content_length):
                # A slow client holds no slot while it sends a small body.
                body: ProxiedBody = await read_body(request, limit, setting) or None
            else:
                body = _record_errors(read_chunks(request, limit, setting), body_errors)
        # Streams would hold slots for long, and anybody can send slow bodies to a public route.
        holds_slot = not (proxy_route.endless or proxy_route.stream_limit or proxy_route.public)
        with self._tracer.start_as_current_span(
            f"{request.method} {request.route_pattern}",
            kind=trace.SpanKind.CLIENT,
            attributes={"http.request.method": request.method, "peer.service": proxy_route.service},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                async with limiter.acquire() if holds_slot else nullcontext():
                    answer = await self._send(proxy_route, request, body)
            except (ClientError, TimeoutError, OSError) as error:
                mark_failed(span, type(error).__name__)
                # The client hides why a body ended early.
                raise (
                    body_errors[0] if body_errors else _unavailable_error(proxy_route, error)
                ) from error
            span.set_attribute("http.response.status_code", answer.status)
        if tenant := answer.headers.get(TENANT_HEADER):
            bind_contextvars(tenant=tenant)
        options.on_proxied(request.headers, answer.headers)
        response = OutgoingResponse(answer.status, _pick_headers(answer.headers, _RESPONSE_HEADERS))
        # A short response has come with its headers: it leaves in one piece.
        has_length = bool(answer.content_length) and request.method != "HEAD"
        if has_length and answer.content.is_eof() and answer.content.exception() is None:
            response.headers.popall("Content-Length", None)
            async with answer:
                response.body = await answer.read()
            return response
        response.chunks = _iterate_answer(proxy_route, answer)
        response.endless = proxy_route.endless
        return response

    async def _send(
        self, proxy_route: ProxyRoute, request: IncomingRequest, body: ProxiedBody
    ) -> ClientResponse:
        if self._http is None:
            raise Unavailable(proxy_route.service, "the gateway is starting or stopping")
        headers = _pick_headers(request.headers, _REQUEST_HEADERS)
        headers.update({**trace_headers(), TENANT_HEADER: TENANT_REQUESTED})
        timeouts: dict[str, Any] = {}
        if proxy_route.endless:
            timeouts["timeout"] = ClientTimeout(
                sock_connect=_CONNECT_SECONDS, sock_read=_READ_TIMEOUT
            )
        elif proxy_route.timeout:
            timeouts["timeout"] = ClientTimeout(
                total=proxy_route.timeout, sock_connect=_CONNECT_SECONDS
            )
        return await self._http.request(
            request.method,
            URL(proxy_route.url.rstrip("/") + request.url.raw_path_qs, encoded=True),
            data=body,
            headers=headers,
            # The service may refuse the signature by the headers, without the body.
            expect100=proxy_route.public and body is not None,
            allow_redirects=False,
            trace_request_ctx=proxy_route.service,
            **timeouts,
        )


async def _iterate_answer(
    proxy_route: ProxyRoute, answer: ClientResponse
) -> AsyncGenerator[bytes, None]:
    async with answer:
        try:
            async for chunk in answer.content.iter_any():
                yield chunk
        except (ClientError, TimeoutError, OSError) as error:
            raise Unavailable(proxy_route.service, "its response broke off") from error


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


def _pick_headers(headers: Mapping[str, str], names: Sequence[str]) -> CIMultiDict[str]:
    return CIMultiDict({name: headers[name] for name in names if name in headers})


def _unavailable_error(proxy_route: ProxyRoute, error: Exception) -> Unavailable:
    timed_out = isinstance(error, TimeoutError) and not isinstance(error, ConnectionTimeoutError)
    hint = f"is `reverie serve {proxy_route.service}` running?"
    return Unavailable(proxy_route.service, "it took too long" if timed_out else hint)

"""The route table of a service, and how a request passes through a route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from multidict import CIMultiDict
from pydantic import BaseModel

from reverie.domain.access.principals import Principal, set_current_principal
from reverie.domain.core.consistency import StoredReply
from reverie.domain.core.errors import QuotaExceeded, Unavailable
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor, RedactorLoader
from reverie.domain.redaction.vault_secrets import OutdatedSecrets
from reverie.runtime.auth.authentication import KeyFinder, TokenVerifier, authenticate, bearer_token
from reverie.runtime.http.calls import Call, Reply, RouteHandler, render_reply
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.idempotency import (
    BestEffortIdempotency,
    EncryptedIdempotency,
    IdempotencyStore,
    request_idempotency_key,
    run_once,
    run_once_streaming,
)
from reverie.runtime.http.instrumentation import PROBE_PATHS
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.http.streaming import (
    StreamingReply,
    has_small_body,
    read_body,
    read_chunks,
)
from reverie.runtime.http.validation import check_path, parse_body, parse_query
from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.runtime.limits.rate_limiter import RateLimiter, RemainingQuota
from reverie.runtime.observability.tracing import current_trace_id


@dataclass(frozen=True)
class Route:
    """One call: what it takes, what it gives, who may use it. OpenAPI is made from this.

    `path` has its variables in braces. `public`: no key at all. `streaming`: the body is taken,
    or the answer made, piece by piece, without the time limit of requests; `stream_limit` bounds
    the body.
    `body_limit`: bytes of a whole body, where they are not those of all calls, and the setting
    they are.
    `supports_etag`: it knows versions, by ETag.
    `rechecks_secrets`: what it writes is refused as `OutdatedSecrets` where the secrets taken out
    of it changed.
    `request_media_types`: media types of a body that is no model; `response_examples`: those of
    answers beside `response`, each with an example. `count_new_memories`: memories that a body
    asks for. `delegates`: it makes calls of its own with the same key, which are what limits and
    the audit log count.
    `read_only`: it changes nothing, whatever its method. `returns_secret`: its answer holds a
    secret, so that it is kept
    sealed.
    """

    method: str
    path: str
    handler: RouteHandler
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    status: int = 200
    public: bool = False
    summary: str = ""
    streaming: bool = False
    stream_limit: int = 0
    body_limit: int = 0
    body_limit_setting: str = "body_limit"
    supports_etag: bool = False
    rechecks_secrets: bool = False
    request_media_types: tuple[str, ...] = ()
    response_examples: Mapping[str, str] = field(default_factory=dict)
    count_new_memories: Callable[[Any], int] | None = None
    delegates: bool = False
    read_only: bool = False
    returns_secret: bool = False

    @property
    def name(self) -> str:
        """As a person would name it: `POST /v1/remember`."""
        return f"{self.method} {self.path}"


_LARGE_BODY_BYTES = 256 * 1024
"""Bytes of a body that is worked on beside the event loop, so that others need not wait for it."""


@dataclass(frozen=True)
class RouteDependencies:
    """What every route of a service needs: keys, idempotency, limits."""

    keys: KeyFinder
    idempotency: IdempotencyStore | None
    body_limit: int
    request_timeout: float
    load_redactor: RedactorLoader | None = None
    load_cached_redactor: RedactorLoader | None = None
    rates: RateLimiter | None = None
    positions: PositionHooks = field(default_factory=PositionHooks)
    concurrency: ConcurrencyLimiter | None = None
    tokens: TokenVerifier | None = None
    dispatcher: Dispatcher | None = None

    def acquire_slot(self, route: Route) -> AbstractAsyncContextManager[None]:
        """Holds a slot of the concurrency limit. Probes are not limited."""
        if self.concurrency is None or route.path in PROBE_PATHS:
            return nullcontext()
        return self.concurrency.acquire()


def add_routes(dispatcher: Dispatcher, routes: list[Route], deps: RouteDependencies) -> None:
    """Adds the routes to the dispatcher."""
    for route in routes:
        handler = partial(_handle_stream if route.streaming else _handle, route, deps)
        dispatcher.add_route(route.method, route.path, handler)


async def _handle(
    route: Route, deps: RouteDependencies, request: IncomingRequest
) -> OutgoingResponse:
    set_current_principal(None)
    async with asyncio.timeout(deps.request_timeout):
        principal = None if route.public else await _authenticate(route, deps, request)
        read = partial(
            read_body, request, route.body_limit or deps.body_limit, route.body_limit_setting
        )
        # A slow client holds no slot while it sends a small body. A large body is not read
        # before there is a slot, so that memory stays bounded.
        data = await read() if has_small_body(request) else None
        async with deps.acquire_slot(route):
            data = await read() if data is None else data
            reply, position_headers = await _run_call(route, deps, request, data, principal)
    if _is_not_modified(route, request, reply):
        return OutgoingResponse(304, CIMultiDict({"ETag": reply.headers["ETag"]}))
    return OutgoingResponse(
        reply.status, CIMultiDict({**reply.headers, **position_headers}), reply.body
    )


async def _run_call(
    route: Route,
    deps: RouteDependencies,
    request: IncomingRequest,
    data: bytes,
    principal: Principal | None,
) -> tuple[StoredReply, Mapping[str, str]]:
    """The answer, and headers that tell where in the log of the store it stands."""
    redactor = await _load_redactor(route, deps, principal)
    with deps.positions.wait_for_position(request.headers):
        read_call = partial(_read_call, route, deps, request, data, principal, redactor)
        call = await asyncio.to_thread(read_call) if len(data) > _LARGE_BODY_BYTES else read_call()
        request.after_reply_jobs = call.after_reply_jobs
        await _count_usage(route, deps, call, len(data))
        try:
            reply = await _answer_idempotently(route, deps, request, (call, data))
        except OutdatedSecrets:
            reply = await _answer_with_fresh_secrets(route, deps, request, (call, data))
        return reply, await deps.positions.response_headers(route.method, reply.status)


async def _authenticate(
    route: Route, deps: RouteDependencies, request: IncomingRequest
) -> Principal:
    """The holder of the key, who has sent no more requests than the key may."""
    principal = await authenticate(request.headers, deps.keys, deps.tokens)
    request.authenticated = (route, principal)
    set_current_principal(principal)
    if deps.rates is not None and not route.delegates:
        try:
            remaining = await deps.rates.count_request(principal)
        except QuotaExceeded as error:
            request.rate_limit_headers = RemainingQuota.exhausted(error).headers()
            raise
        if remaining is not None:
            request.rate_limit_headers = remaining.headers()
    return principal


async def _count_chunks(
    route: Route, deps: RouteDependencies, principal: Principal, chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """The pieces of a body, each counted as what its key sends."""
    async for chunk in chunks:
        if deps.rates is not None and not route.delegates:
            await deps.rates.count_bytes(principal, len(chunk))
        yield chunk


async def _count_usage(
    route: Route, deps: RouteDependencies, call: Call[Any, Any], size: int
) -> None:
    """What a request takes of the quotas of its key and tenant. Raises `QuotaExceeded`."""
    if deps.rates is None or call.caller is None:
        return
    await deps.rates.count_bytes(call.caller, size)
    if route.count_new_memories is not None:
        await deps.rates.count_memories(call.caller, route.count_new_memories(call.body))


def _is_not_modified(route: Route, request: IncomingRequest, reply: StoredReply) -> bool:
    tags = [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]
    tag = reply.headers.get("ETag")
    return route.method == "GET" and tag is not None and bool({tag, f"W/{tag}", "*"} & {*tags})


async def _handle_stream(
    route: Route, deps: RouteDependencies, request: IncomingRequest
) -> OutgoingResponse:
    principal = await _authenticate(route, deps, request)
    redactor = await _load_redactor(route, deps, principal)
    call = _read_call(route, deps, request, b"", principal, redactor)
    if deps.rates is not None:
        call = replace(call, spend=partial(deps.rates.count_memories, principal))
    request.after_reply_jobs = call.after_reply_jobs
    wait_for_position = partial(deps.positions.wait_for_position, request.headers)
    with wait_for_position():
        result = await _run_streaming(route, deps, request, call)
        if isinstance(result, StreamingReply):
            chunks = aiter(result.chunks)
            # An error before the first chunk can still become a problem response.
            first = await anext(chunks, b"")
            return OutgoingResponse(
                200,
                CIMultiDict(result.headers),
                chunks=_continue_stream(first, chunks, wait_for_position),
                endless=result.endless,
            )
    reply = result if isinstance(result, StoredReply) else render_reply(result)
    position_headers = await deps.positions.response_headers(route.method, reply.status)
    return OutgoingResponse(
        reply.status, CIMultiDict({**reply.headers, **position_headers}), reply.body
    )


async def _continue_stream(
    first: bytes,
    chunks: AsyncIterator[bytes],
    wait_for_position: Callable[[], AbstractContextManager[None]],
) -> AsyncGenerator[bytes, None]:
    """All chunks. Each may be read in another task, so each gets a read barrier of its own."""
    try:
        yield first
        while True:
            with wait_for_position():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


async def _run_streaming(
    route: Route, deps: RouteDependencies, request: IncomingRequest, call: Call[Any, Any]
) -> BaseModel | Reply | StreamingReply | StoredReply:
    """The answer; to a long body that names itself it is given once."""
    if not route.stream_limit:
        return await route.handler(call)
    raw_chunks = read_chunks(request, route.stream_limit, "import_limit")
    chunks = _count_chunks(route, deps, call.principal, raw_chunks)
    if not (call.idempotency_key and deps.idempotency) or route.delegates:
        return await route.handler(replace(call, stream=chunks))

    async def answered(body: AsyncIterator[bytes]) -> StoredReply:
        return await _run_handler(route, replace(call, stream=body))

    request_name = f"{route.method} {request.url}"
    return await run_once_streaming(
        deps.idempotency,
        call.principal.tenant,
        call.idempotency_key,
        (request_name, chunks),
        answered,
    )


async def _load_redactor(
    route: Route, deps: RouteDependencies, principal: Principal | None
) -> Redactor:
    """Redacts the secrets of the tenant's vault in writes; reads need only the credentials."""
    load_redactor = (route.rechecks_secrets and deps.load_cached_redactor) or deps.load_redactor
    if principal is None or load_redactor is None or route.method == "GET":
        return CREDENTIAL_REDACTOR
    return (await load_redactor(principal.tenant)).naming(principal.may_read)


async def _answer_with_fresh_secrets(
    route: Route,
    deps: RouteDependencies,
    request: IncomingRequest,
    call_and_data: tuple[Call[Any, Any], bytes],
) -> StoredReply:
    """The answer with the secrets as they are now."""
    assert deps.load_redactor is not None
    call, data = call_and_data
    redactor = (await deps.load_redactor(call.principal.tenant)).naming(call.principal.may_read)
    try:
        return await _answer_idempotently(
            route, deps, request, (replace(call, redactor=redactor), data)
        )
    except OutdatedSecrets:
        raise Unavailable("the vault", "its secrets change all the time: try again") from None


def _read_call(
    route: Route,
    deps: RouteDependencies,
    request: IncomingRequest,
    data: bytes,
    principal: Principal | None,
    redactor: Redactor = CREDENTIAL_REDACTOR,
) -> Call[Any, Any]:
    check_path(request.path_values)
    return Call(
        body=parse_body(route.body, data) if route.body else None,
        query=parse_query(route.query, request.url.query),
        path=request.path_values,
        headers=request.headers,
        raw_body=data,
        trace_id=current_trace_id() or "",
        idempotency_key=request_idempotency_key(request.headers, principal),
        caller=principal,
        dispatcher=deps.dispatcher,
        redactor=redactor,
    )


async def _answer_idempotently(
    route: Route,
    deps: RouteDependencies,
    request: IncomingRequest,
    call_and_data: tuple[Call[Any, Any], bytes],
) -> StoredReply:
    call, data = call_and_data
    has_idempotency_key = route.method != "GET" and call.idempotency_key and call.caller
    if not has_idempotency_key or deps.idempotency is None:
        return await _run_handler(route, call)
    store: IdempotencyStore = deps.idempotency
    if route.returns_secret:
        store = EncryptedIdempotency(store, bearer_token(request.headers) or "")
    return await run_once(
        BestEffortIdempotency(store) if route.read_only else store,
        call.principal.tenant,
        call.idempotency_key or "",
        (f"{route.method} {request.url}", data),
        partial(_run_handler, route, call),
    )


async def _run_handler(route: Route, call: Call[Any, Any]) -> StoredReply:
    result = await route.handler(call)
    if isinstance(result, StreamingReply):
        raise TypeError("only a route that streams may answer with a stream")
    reply = render_reply(result)
    if isinstance(result, BaseModel) and route.status != reply.status:
        return StoredReply(route.status, reply.body, reply.headers)
    return reply

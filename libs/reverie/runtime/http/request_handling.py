"""Passes a request through its route: key, limits, body, idempotency, handler, response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from multidict import CIMultiDict
from pydantic import BaseModel

from reverie.domain.access.principals import Principal
from reverie.domain.core.consistency import StoredReply
from reverie.domain.core.errors import QuotaExceeded, Unavailable
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor, RedactorLoader
from reverie.domain.redaction.vault_secrets import OutdatedSecrets
from reverie.runtime.auth.authentication import Authenticator, bearer_token
from reverie.runtime.http.calls import Call, render_reply
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
from reverie.runtime.http.routes import Route
from reverie.runtime.http.streaming import (
    StreamingReply,
    has_small_body,
    read_body,
    read_chunks,
)
from reverie.runtime.http.validation import check_path, parse_body, parse_query
from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.runtime.limits.rate_limiter import RateLimiter, RemainingQuota
from reverie.runtime.observability.memory_spans import memory_span
from reverie.runtime.observability.tracing import current_trace_id

_PARSE_IN_THREAD_BYTES = 256 * 1024
"""Larger bodies are parsed in a thread, so that other requests need not wait."""


@dataclass(frozen=True)
class RouteDependencies:
    """The dependencies of every route of a service: keys, idempotency, limits.

    `span_content`: whether spans may contain questions and memories.
    """

    authenticate: Authenticator
    idempotency: IdempotencyStore | None
    body_limit: int
    request_timeout: float
    load_redactor: RedactorLoader | None
    load_cached_redactor: RedactorLoader | None
    rates: RateLimiter | None
    positions: PositionHooks
    concurrency: ConcurrencyLimiter
    dispatcher: Dispatcher
    span_content: bool = False


def add_routes(routes: list[Route], deps: RouteDependencies) -> None:
    """Adds the routes to the dispatcher."""
    for route in routes:
        executor = RouteExecutor(route, deps)
        handle = executor.answer_streaming if route.streaming else executor.answer
        deps.dispatcher.add_route(route.method, route.path, handle)


@dataclass(frozen=True)
class RouteExecutor:
    """Answers the requests of one route."""

    route: Route
    deps: RouteDependencies

    async def answer(self, request: IncomingRequest) -> OutgoingResponse:
        """The response of a route that takes a whole body and gives a whole answer."""
        route, deps = self.route, self.deps
        limit = route.body_limit or deps.body_limit
        read = partial(read_body, request, limit, route.body_limit_setting)
        slot = nullcontext() if route.path in PROBE_PATHS else deps.concurrency.acquire()
        async with asyncio.timeout(deps.request_timeout):
            principal, data = None, await self._read_public_body(request, limit)
            if not route.public:
                # Nothing is read before the key is checked.
                principal = await self._authenticate(request)
                # A slow client holds no slot while it sends a small body. A large body is not read
                # before there is a slot, so that memory stays bounded.
                data = await read() if has_small_body(request) else None
            async with slot:
                data = await read() if data is None else data
                response = await self._run_call(request, data, principal)
        tag = response.headers.get("ETag")
        known_tags = {tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")}
        if route.method == "GET" and tag is not None and {tag, f"W/{tag}", "*"} & known_tags:
            return OutgoingResponse(304, CIMultiDict({"ETag": tag}))
        return response

    async def answer_streaming(self, request: IncomingRequest) -> OutgoingResponse:
        """The response of a route whose body or answer is streamed."""
        deps = self.deps
        async with asyncio.timeout(deps.request_timeout):
            principal = await self._authenticate(request)
            redactor = await self._load_redactor(principal)
        call = self._read_call(request, b"", principal, redactor)
        if deps.rates is not None:
            call = replace(call, spend=partial(deps.rates.count_memories, principal))
        request.after_reply_jobs = call.after_reply_jobs
        wait_for_position = partial(deps.positions.wait_for_position, request.headers)
        with wait_for_position():
            if self.route.stream_limit:
                return await self._respond(await self._consume_stream(request, call))
            result = await self.route.handler(call)
            if not isinstance(result, StreamingReply):
                return await self._respond(render_reply(result))
            chunks = aiter(result.chunks)
            # An error before the first chunk can still become a problem response.
            first = await anext(chunks, b"")
            return OutgoingResponse(
                200,
                CIMultiDict(result.headers),
                chunks=_continue_stream(first, chunks, wait_for_position),
                endless=result.endless,
            )

    async def _read_public_body(self, request: IncomingRequest, limit: int) -> bytes | None:
        """The body of a public call, if its signature is right; without one, it is not read."""
        route = self.route
        if route.read_signed_body is None:
            return b"" if route.public else None
        check_path(request.path_values)
        chunks = read_chunks(request, limit, route.body_limit_setting)
        return await route.read_signed_body(request, chunks)

    async def _authenticate(self, request: IncomingRequest) -> Principal:
        """Returns the principal of the key, and checks its rate limit."""
        principal = await self.deps.authenticate(request.headers)
        request.authenticated = (self.route, principal)
        if self.deps.rates is not None and not self.route.delegates:
            try:
                remaining = await self.deps.rates.count_request(principal)
            except QuotaExceeded as error:
                request.rate_limit_headers = RemainingQuota.exhausted(error).headers()
                raise
            if remaining is not None:
                request.rate_limit_headers = remaining.headers()
        return principal

    async def _load_redactor(self, principal: Principal | None) -> Redactor:
        """Redacts the secrets of the tenant's vault in writes; reads need only the credentials."""
        load = self.deps.load_redactor
        if self.route.rechecks_secrets and self.deps.load_cached_redactor:
            load = self.deps.load_cached_redactor
        if principal is None or load is None or self.route.method == "GET":
            return CREDENTIAL_REDACTOR
        return (await load(principal.tenant)).naming(principal.may_read)

    def _read_call(
        self,
        request: IncomingRequest,
        data: bytes,
        principal: Principal | None,
        redactor: Redactor,
    ) -> Call[Any, Any]:
        check_path(request.path_values)
        return Call(
            body=parse_body(self.route.body, data) if self.route.body else None,
            query=parse_query(self.route.query, request.url.query),
            path=request.path_values,
            headers=request.headers,
            raw_body=data,
            trace_id=current_trace_id() or "",
            idempotency_key=request_idempotency_key(request.headers, principal),
            caller=principal,
            dispatcher=self.deps.dispatcher,
            redactor=redactor,
        )

    async def _run_call(
        self, request: IncomingRequest, data: bytes, principal: Principal | None
    ) -> OutgoingResponse:
        deps, redactor = self.deps, await self._load_redactor(principal)
        with deps.positions.wait_for_position(request.headers):
            read_call = partial(self._read_call, request, data, principal, redactor)
            is_large = len(data) > _PARSE_IN_THREAD_BYTES
            call = await asyncio.to_thread(read_call) if is_large else read_call()
            request.after_reply_jobs = call.after_reply_jobs
            if deps.rates is not None and principal is not None:
                await deps.rates.count_bytes(principal, len(data))
                if self.route.count_new_memories is not None:
                    new_memories = self.route.count_new_memories(call.body)
                    await deps.rates.count_memories(principal, new_memories)
            try:
                reply = await self._run_once(request, call)
            except OutdatedSecrets:
                reply = await self._run_with_fresh_secrets(request, call)
            return await self._respond(reply)

    async def _run_with_fresh_secrets(
        self, request: IncomingRequest, call: Call[Any, Any]
    ) -> StoredReply:
        assert self.deps.load_redactor is not None
        redactor = await self.deps.load_redactor(call.principal.tenant)
        try:
            return await self._run_once(
                request, replace(call, redactor=redactor.naming(call.principal.may_read))
            )
        except OutdatedSecrets:
            raise Unavailable("the vault", "its secrets change all the time: try again") from None

    async def _run_once(self, request: IncomingRequest, call: Call[Any, Any]) -> StoredReply:
        """The reply of the handler, or the stored one of the same request."""
        store, run_handler = self.deps.idempotency, partial(self._run_handler, call)
        if self.route.method == "GET" or not call.idempotency_key or store is None:
            return await run_handler()
        if self.route.returns_secret:
            store = EncryptedIdempotency(store, bearer_token(request.headers) or "")
        return await run_once(
            BestEffortIdempotency(store) if self.route.read_only else store,
            call.principal.tenant,
            call.idempotency_key,
            (f"{self.route.method} {request.url}", call.raw_body),
            run_handler,
        )

    async def _run_handler(self, call: Call[Any, Any]) -> StoredReply:
        with memory_span(self.route.name, self.deps.span_content) as memory:
            if memory is not None:
                memory.record_request(call.principal, call.body, call.path)
            result = await self.route.handler(call)
            if memory is not None:
                memory.record_response(getattr(result, "body", result))
        if isinstance(result, StreamingReply):
            raise TypeError("only a route that streams may answer with a stream")
        reply = render_reply(result)
        return replace(reply, status=self.route.status) if isinstance(result, BaseModel) else reply

    async def _consume_stream(self, request: IncomingRequest, call: Call[Any, Any]) -> StoredReply:
        """The reply to a body that is read in chunks."""
        route, deps = self.route, self.deps
        body = read_chunks(request, route.stream_limit, route.body_limit_setting)
        chunks = self._count_chunks(call.principal, body)
        if not call.idempotency_key or deps.idempotency is None or route.delegates:
            return await self._run_handler(replace(call, stream=chunks))
        return await run_once_streaming(
            deps.idempotency,
            call.principal.tenant,
            call.idempotency_key,
            (f"{route.method} {request.url}", chunks),
            lambda body: self._run_handler(replace(call, stream=body)),
        )

    async def _count_chunks(
        self, principal: Principal, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """The chunks of a body, each counted against the quota of bytes."""
        async for chunk in chunks:
            if self.deps.rates is not None and not self.route.delegates:
                await self.deps.rates.count_bytes(principal, len(chunk))
            yield chunk

    async def _respond(self, reply: StoredReply) -> OutgoingResponse:
        """Builds the response, with the log position of the write if reads may go to a replica."""
        position_headers = await self.deps.positions.response_headers(
            self.route.method, reply.status
        )
        headers = CIMultiDict({**reply.headers, **position_headers})
        return OutgoingResponse(reply.status, headers, reply.body)


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

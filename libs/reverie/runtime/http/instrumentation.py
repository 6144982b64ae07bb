"""Outermost middleware: span, metrics and log line of each request, after-reply jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from opentelemetry import trace
from prometheus_client import CollectorRegistry

from reverie.runtime.http.calls import AfterReplyJob
from reverie.runtime.http.problem_responses import (
    PROBLEM_CODE,
    NextHandler,
    route_pattern,
)
from reverie.runtime.observability.metrics import RequestMetrics
from reverie.runtime.observability.tracing import (
    current_trace_id,
    extract_context,
    inject_headers,
    mark_failed,
)

log = structlog.get_logger()

TRACE_HEADER = "X-Trace-Id"
TENANT_HEADER = "Reverie-Tenant"
"""By which a gateway asks whose call it passed on was, for its own log, and is told."""
TENANT_REQUESTED = "?"
AFTER_REPLY: web.RequestKey[list[AfterReplyJob]] = web.RequestKey("LATER", list)
RATE_LIMIT_HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("LEFT", dict)
"""What the key has left, as headers of the response."""
_KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
PROBE_PATHS = frozenset({"/health", "/ready", "/metrics"})


class AfterReplyRunner:
    """Work that goes on after its reply has left; `drain` waits for all of it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, jobs: Sequence[AfterReplyJob]) -> None:
        for job in jobs:
            task = asyncio.create_task(_run_guarded(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Waits for what is under way; cancels what is not done after `seconds`."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            log.warning("after_reply_cancelled", count=len(late))
            await asyncio.wait(late)


async def _run_guarded(job: AfterReplyJob) -> None:
    try:
        await job()
    except Exception:
        log.exception("after_reply_failed")


class RequestInstrumentation:
    """The middleware, and the hook that puts the trace into every response."""

    def __init__(self, registry: CollectorRegistry, after_reply: AfterReplyRunner) -> None:
        self._metrics = RequestMetrics(registry)
        self._after_reply = after_reply
        self._tracer = trace.get_tracer("reverie.http")

    def middleware(self) -> Middleware:
        @web.middleware
        async def observe(request: web.Request, handler: NextHandler) -> web.StreamResponse:
            structlog.contextvars.clear_contextvars()
            method = request.method if request.method in _KNOWN_METHODS else "OTHER"
            return await self._observe_request(request, handler, method)

        return observe

    async def _observe_request(
        self, request: web.Request, handler: NextHandler, method: str
    ) -> web.StreamResponse:
        started = time.perf_counter()
        route = route_pattern(request)
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=extract_context(request.headers),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
            record_exception=False,
        ) as span:
            try:
                response = await handler(request)
                await _send_reply(request, response)
            finally:
                self._after_reply.start(request.get(AFTER_REPLY, ()))
            code = request.get(PROBLEM_CODE)
            _finish_span(span, response.status, code)
            seconds = time.perf_counter() - started
            self._metrics.observe(method, route, response.status, seconds, code)
            _log_request(request, response.status, seconds, code)
        return response


async def _send_reply(request: web.Request, response: web.StreamResponse) -> None:
    """Writes the reply here rather than later, so that what comes after comes after it."""
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        log.debug("client_gone", route=route_pattern(request))


def _finish_span(span: trace.Span, status: int, code: str | None) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        mark_failed(span, code or str(status))


def _log_request(request: web.Request, status: int, seconds: float, code: str | None) -> None:
    quiet = request.path in PROBE_PATHS and status < 500
    (log.debug if quiet else log.info)(
        "request_answered",
        method=request.method,
        route=route_pattern(request),
        status=status,
        ms=round(seconds * 1000, 2),
        **({"problem": code} if code else {}),
    )


async def add_response_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Headers of every response; names no version of anything."""
    response.headers["Server"] = "reverie"
    response.headers.update(request.get(RATE_LIMIT_HEADERS, {}))
    response.headers["X-Content-Type-Options"] = "nosniff"
    tenant = structlog.contextvars.get_contextvars().get("tenant")
    if tenant and request.headers.get(TENANT_HEADER) == TENANT_REQUESTED:
        response.headers[TENANT_HEADER] = tenant
    trace_id = current_trace_id()
    if trace_id is not None:
        response.headers[TRACE_HEADER] = trace_id
        response.headers.update(inject_headers())

"""The outermost layer of every request: span, metrics, log line, and work after the reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from opentelemetry import trace
from prometheus_client import CollectorRegistry

from reverie.domain.errors import Crowded
from reverie.runtime.admission import Admission
from reverie.runtime.calls import AfterReply
from reverie.runtime.glance import Turnstile
from reverie.runtime.metrics import RequestMetrics
from reverie.runtime.problems import CROWDED, PROBLEM, Next, crowded, route_of
from reverie.runtime.telemetry import current_trace_id, extract, inject_headers, mark_failed

log = structlog.get_logger()

TRACE_HEADER = "X-Trace-Id"
TENANT = "Reverie-Tenant"
"""By which a gateway asks whose call it passed on was, for its own log, and is told."""
ASKED = "?"
LATER: web.RequestKey[list[AfterReply]] = web.RequestKey("LATER", list)
LEFT: web.RequestKey[dict[str, str]] = web.RequestKey("LEFT", dict)
"""What the key has left, as headers of the response."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
PROBES = frozenset({"/health", "/ready", "/metrics"})


class AfterWork:
    """Work that goes on after its reply has left; `drain` waits for all of it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, works: Sequence[AfterReply]) -> None:
        for work in works:
            task = asyncio.create_task(_guarded(work))
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


async def _guarded(work: AfterReply) -> None:
    try:
        await work()
    except Exception:
        log.exception("after_reply_failed")


class Observer:
    """The middleware, and the hook that puts the trace into every response."""

    def __init__(self, registry: CollectorRegistry, after: AfterWork) -> None:
        self._metrics = RequestMetrics(registry)
        self._after = after
        self._tracer = trace.get_tracer("reverie.http")

    def middleware(self) -> Middleware:
        @web.middleware
        async def observe(request: web.Request, handler: Next) -> web.StreamResponse:
            structlog.contextvars.clear_contextvars()
            method = request.method if request.method in _METHODS else "OTHER"
            return await self._observed(request, handler, method)

        return observe

    def shedding(self, doors: Mapping[object, Admission], turnstile: Turnstile) -> Middleware:
        """Refuses what could only wait in vain, before anything is made of it; `doors` by handler.

        It is counted, and told in the log once a second; the next like it is known to `turnstile`.
        """

        @web.middleware
        async def shed(request: web.Request, handler: Next) -> web.StreamResponse:
            door = doors.get(request.match_info.handler)
            if door is None:
                return await handler(request)
            try:
                door.check()
            except Crowded as error:
                counted = self._metrics.refusals(request.method, route_of(request), error.code)
                counted()
                turnstile.learn(request, door, counted)
                return crowded(request, error)
            return await handler(request)

        return shed

    async def _observed(
        self, request: web.Request, handler: Next, method: str
    ) -> web.StreamResponse:
        started = time.perf_counter()
        route = route_of(request)
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=extract(request.headers),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
            record_exception=False,
        ) as span:
            try:
                response = await handler(request)
                await _send(request, response)
            finally:
                self._after.start(request.get(LATER, ()))
            code = request.get(PROBLEM)
            _finish_span(span, response.status, code)
            seconds = time.perf_counter() - started
            self._metrics.observe(method, route, response.status, seconds, code)
            _log_line(request, response.status, seconds, code)
        return response


async def _send(request: web.Request, response: web.StreamResponse) -> None:
    """Writes the reply here rather than later, so that what comes after comes after it."""
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        log.debug("client_gone", route=route_of(request))


def _finish_span(span: trace.Span, status: int, code: str | None) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        mark_failed(span, code or str(status))


def _log_line(request: web.Request, status: int, seconds: float, code: str | None) -> None:
    quiet = (request.path in PROBES and status < 500) or request.get(CROWDED, False)
    (log.debug if quiet else log.info)(
        "request_answered",
        method=request.method,
        route=route_of(request),
        status=status,
        ms=round(seconds * 1000, 2),
        **({"problem": code} if code else {}),
    )


async def sign_response(request: web.Request, response: web.StreamResponse) -> None:
    """Headers of every response; names no version of anything."""
    response.headers["Server"] = "reverie"
    response.headers.update(request.get(LEFT, {}))
    response.headers["X-Content-Type-Options"] = "nosniff"
    tenant = structlog.contextvars.get_contextvars().get("tenant")
    if tenant and request.headers.get(TENANT) == ASKED:
        response.headers[TENANT] = tenant
    trace_id = current_trace_id()
    if trace_id is not None:
        response.headers[TRACE_HEADER] = trace_id
        response.headers.update(inject_headers())

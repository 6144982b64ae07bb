"""Span, metrics, log line and common headers of each request; jobs that run after the reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from opentelemetry import trace
from prometheus_client import CollectorRegistry

from reverie.runtime.http.exchange import (
    AfterReplyJob,
    IncomingRequest,
    OutgoingResponse,
    RequestHandler,
)
from reverie.runtime.observability.metrics import RequestMetrics
from reverie.runtime.observability.tracing import (
    current_trace_id,
    extract_context,
    mark_failed,
    trace_headers,
)

log = structlog.get_logger()

TRACE_HEADER = "X-Trace-Id"
TENANT_HEADER = "Reverie-Tenant"
"""The header by which a gateway requests the tenant of a forwarded call, for its own log."""
TENANT_REQUESTED = "?"
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
            log.warning("background_task_cancelled", count=len(late))
            await asyncio.wait(late)


async def _run_guarded(job: AfterReplyJob) -> None:
    try:
        await job()
    except Exception:
        log.exception("background_task_failed")


class RequestInstrumentation:
    """Observes requests: spans, metrics and log lines."""

    def __init__(self, registry: CollectorRegistry, after_reply: AfterReplyRunner) -> None:
        self._metrics = RequestMetrics(registry)
        self._after_reply = after_reply
        self._tracer = trace.get_tracer("reverie.http")

    @asynccontextmanager
    async def observe(
        self, request: IncomingRequest, handler: RequestHandler
    ) -> AsyncIterator[OutgoingResponse]:
        """The response of `handler`. The request ends when the context is left."""
        structlog.contextvars.clear_contextvars()
        method = request.method if request.method in _KNOWN_METHODS else "OTHER"
        started = time.perf_counter()
        route = request.route_pattern
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=extract_context(request.headers),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
            record_exception=False,
        ) as span:
            response: OutgoingResponse | None = None
            try:
                response = await handler(request)
                response.headers.update(_common_headers(request))
                yield response
            finally:
                self._after_reply.start(request.after_reply_jobs)
                if response is not None:
                    seconds = time.perf_counter() - started
                    self._record(span, request, method, response.status, seconds)

    def _record(
        self, span: trace.Span, request: IncomingRequest, method: str, status: int, seconds: float
    ) -> None:
        code = request.problem_code
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            mark_failed(span, code or str(status))
        self._metrics.observe(method, request.route_pattern, status, seconds, code)
        is_quiet = request.url.path in PROBE_PATHS and status < 500
        (log.debug if is_quiet else log.info)(
            "request_answered",
            method=request.method,
            route=request.route_pattern,
            status=status,
            ms=round(seconds * 1000, 2),
            **({"problem": code} if code else {}),
        )


def _common_headers(request: IncomingRequest) -> dict[str, str]:
    """Headers of every response; they name no version of anything."""
    headers = {
        "Server": "reverie",
        **request.rate_limit_headers,
        "X-Content-Type-Options": "nosniff",
    }
    tenant = structlog.contextvars.get_contextvars().get("tenant")
    if tenant and request.headers.get(TENANT_HEADER) == TENANT_REQUESTED:
        headers[TENANT_HEADER] = tenant
    trace_id = current_trace_id()
    if trace_id is not None:
        headers[TRACE_HEADER] = trace_id
        headers.update(trace_headers())
    return headers

"""Prometheus metrics of outgoing HTTP requests."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientSession, TraceConfig
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.runtime.observability.metrics import LATENCY_BUCKETS, exemplar


class HttpClientMetrics:
    """Rate, errors and duration of outgoing requests, and the number that run or wait for a
    connection.

    `peer`: the service called.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "reverie_http_client_requests",
            "Requests to other services, by status class or error.",
            ["peer", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "reverie_http_client_seconds",
            "Seconds until the response headers arrived.",
            ["peer"],
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "reverie_http_client_in_flight",
            "Requests whose response has not begun.",
            ["peer"],
            registry=registry,
        )
        self._queued = Gauge(
            "reverie_http_client_queued",
            "Requests that wait for a free connection.",
            ["peer"],
            registry=registry,
        )

    def trace_config(self) -> TraceConfig:
        """Builds the trace configuration of a session; requests name their peer by
        `trace_request_ctx`.
        """
        config = TraceConfig(_RequestTrace)
        config.on_request_start.append(self._on_start)
        config.on_request_end.append(self._on_end)
        config.on_request_exception.append(self._on_error)
        config.on_connection_queued_start.append(self._on_queued)
        config.on_connection_queued_end.append(self._on_dequeued)
        return config

    async def _on_start(self, _: ClientSession, request_trace: SimpleNamespace, __: Any) -> None:
        self._in_flight.labels(request_trace.peer).inc()
        self._queued.labels(request_trace.peer)

    async def _on_end(self, _: ClientSession, request_trace: SimpleNamespace, params: Any) -> None:
        self._finish(request_trace, f"{params.response.status // 100}xx")

    async def _on_error(
        self, _: ClientSession, request_trace: SimpleNamespace, params: Any
    ) -> None:
        self._finish(request_trace, type(params.exception).__name__)

    def _finish(self, request_trace: SimpleNamespace, outcome: str) -> None:
        self._in_flight.labels(request_trace.peer).dec()
        if request_trace.queued:
            self._unqueue(request_trace)
        self._requests.labels(request_trace.peer, outcome).inc()
        elapsed = time.perf_counter() - request_trace.begun
        self._seconds.labels(request_trace.peer).observe(elapsed, exemplar())

    async def _on_queued(self, _: ClientSession, request_trace: SimpleNamespace, __: Any) -> None:
        request_trace.queued = True
        self._queued.labels(request_trace.peer).inc()

    async def _on_dequeued(self, _: ClientSession, request_trace: SimpleNamespace, __: Any) -> None:
        self._unqueue(request_trace)

    def _unqueue(self, request_trace: SimpleNamespace) -> None:
        request_trace.queued = False
        self._queued.labels(request_trace.peer).dec()


class _RequestTrace(SimpleNamespace):
    """One request: its target, its start, and whether it waits for a connection."""

    def __init__(self, trace_request_ctx: str) -> None:
        super().__init__(peer=trace_request_ctx, begun=time.perf_counter(), queued=False)

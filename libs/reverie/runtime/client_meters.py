"""What this process asks of others over HTTP, counted for Prometheus."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from aiohttp import ClientSession, TraceConfig
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.runtime.metrics import SECONDS, exemplar

OWN = "gateway"
"""The gateway itself, asked by its other doors."""


class ClientMeters:
    """Rate, errors and duration of the requests that go out, and how many are under way or wait
    for a connection. `peer`: the service that is asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "reverie_http_client_requests",
            "Requests sent to other services, by the class of their status or why there was none.",
            ["peer", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "reverie_http_client_seconds",
            "Seconds until the head of the answer was there.",
            ["peer"],
            buckets=SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "reverie_http_client_in_flight",
            "Requests sent whose answer has not begun.",
            ["peer"],
            registry=registry,
        )
        self._queued = Gauge(
            "reverie_http_client_queued",
            "Requests that wait for a free connection.",
            ["peer"],
            registry=registry,
        )

    def trace(self) -> TraceConfig:
        """What a session is made with; requests name their peer by `trace_request_ctx`."""
        config = TraceConfig(_Asked)
        config.on_request_start.append(self._started)
        config.on_request_end.append(self._answered)
        config.on_request_exception.append(self._failed)
        config.on_connection_queued_start.append(self._waits)
        config.on_connection_queued_end.append(self._goes_on)
        return config

    async def _started(self, _: ClientSession, asked: SimpleNamespace, __: Any) -> None:
        self._in_flight.labels(asked.peer).inc()
        self._queued.labels(asked.peer)

    async def _answered(self, _: ClientSession, asked: SimpleNamespace, told: Any) -> None:
        self._ended(asked, f"{told.response.status // 100}xx")

    async def _failed(self, _: ClientSession, asked: SimpleNamespace, told: Any) -> None:
        self._ended(asked, type(told.exception).__name__)

    def _ended(self, asked: SimpleNamespace, outcome: str) -> None:
        self._in_flight.labels(asked.peer).dec()
        if asked.queued:
            self._unqueue(asked)
        self._requests.labels(asked.peer, outcome).inc()
        took = time.perf_counter() - asked.begun
        self._seconds.labels(asked.peer).observe(took, exemplar())

    async def _waits(self, _: ClientSession, asked: SimpleNamespace, __: Any) -> None:
        asked.queued = True
        self._queued.labels(asked.peer).inc()

    async def _goes_on(self, _: ClientSession, asked: SimpleNamespace, __: Any) -> None:
        self._unqueue(asked)

    def _unqueue(self, asked: SimpleNamespace) -> None:
        asked.queued = False
        self._queued.labels(asked.peer).dec()


class _Asked(SimpleNamespace):
    """One request: whom it asks, since when, and whether it waits for a connection."""

    def __init__(self, trace_request_ctx: str | None = None) -> None:
        super().__init__(peer=trace_request_ctx or OWN, begun=time.perf_counter(), queued=False)

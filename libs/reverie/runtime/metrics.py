"""Prometheus metrics: rate, errors and duration of each route, and gauges by callback."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def new_registry() -> CollectorRegistry:
    """A registry of this process, with what Python and the system say of it."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class RequestMetrics:
    """What is counted of each request. `route` is the pattern, never the path itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "reverie_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.errors = Counter(
            "reverie_http_errors",
            "Requests answered with a problem, by its code.",
            ["method", "route", "code"],
            registry=registry,
        )
        self.seconds = Histogram(
            "reverie_http_request_seconds",
            "Seconds until a request was answered.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=registry,
        )

    def observe(
        self, method: str, route: str, status: int, seconds: float, code: str | None
    ) -> None:
        """Counts one request; `code` is that of its problem."""
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(method, route).observe(seconds)
        if code is not None:
            self.errors.labels(method, route, code).inc()


def gauge(registry: CollectorRegistry, name: str, text: str, read: Callable[[], float]) -> None:
    """A gauge whose value is read when it is scraped."""
    Gauge(name, text, registry=registry).set_function(read)


def exposition(registry: CollectorRegistry) -> bytes:
    """The registry in the text format that Prometheus reads."""
    return generate_latest(registry)

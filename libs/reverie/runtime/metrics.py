"""Prometheus metrics: rate, errors and duration of each route, and gauges that are asked for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog
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

log = structlog.get_logger()

CONTENT_TYPE = CONTENT_TYPE_LATEST
_READ_SECONDS = 2.0
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


@dataclass(frozen=True)
class Reading:
    """A gauge whose value has to be asked for: of the store, or of the bus."""

    name: str
    text: str
    read: Callable[[], Awaitable[float]]


class Readings:
    """Reads its gauges anew at every scrape; one that fails is not a number."""

    def __init__(self, registry: CollectorRegistry, readings: Sequence[Reading]) -> None:
        self._gauges = [(one, Gauge(one.name, one.text, registry=registry)) for one in readings]

    async def refresh(self) -> None:
        """Sets every gauge to what stands now."""
        await asyncio.gather(*(self._set(one, gauge) for one, gauge in self._gauges))

    async def _set(self, reading: Reading, gauge: Gauge) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                gauge.set(await reading.read())
        except Exception as error:
            # A scrape tells what it can: one reading that fails must not hide the others.
            log.info("reading_failed", gauge=reading.name, error=type(error).__name__)
            gauge.set(math.nan)


def exposition(registry: CollectorRegistry) -> bytes:
    """The registry in the text format that Prometheus reads."""
    return generate_latest(registry)

"""Prometheus registry, request metrics, and gauges that are polled at each scrape."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import structlog
from opentelemetry import trace
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

log = structlog.get_logger()

_READ_TIMEOUT = 2.0
# No query uses the creation time of a series, and it doubles the scraped data.
disable_created_metrics()  # type: ignore[no-untyped-call]
LATENCY_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


def create_registry() -> CollectorRegistry:
    """Creates a registry of this process, with the metrics of Python and the system."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class RequestMetrics:
    """The metrics of requests. `route` is the pattern, never the path itself."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = cache(
            Counter(
                "reverie_http_requests",
                "Requests answered.",
                ["method", "route", "status"],
                registry=registry,
            ).labels
        )
        self.errors = cache(
            Counter(
                "reverie_http_errors",
                "Requests answered with a problem, by its code.",
                ["method", "route", "code"],
                registry=registry,
            ).labels
        )
        self.seconds = cache(
            Histogram(
                "reverie_http_request_seconds",
                "Seconds until a request was answered.",
                ["method", "route"],
                buckets=LATENCY_BUCKETS,
                registry=registry,
            ).labels
        )

    def observe(
        self, method: str, route: str, status: int, seconds: float, code: str | None
    ) -> None:
        """Counts one request; `code` is that of its problem."""
        self.requests(method, route, str(status)).inc()
        self.seconds(method, route).observe(seconds, exemplar())
        if code is not None:
            self.errors(method, route, code).inc()


@dataclass(frozen=True)
class PolledGauge:
    """A gauge whose value is read from the store or from the bus.

    Gauges of one name differ by their `labels`.
    """

    name: str
    description: str
    read: Callable[[], Awaitable[float]]
    labels: Mapping[str, str] = field(default_factory=dict)


class PolledGauges:
    """Reads its gauges at every scrape; a gauge that fails becomes NaN.

    It includes the number of event loop tasks, because a growing number shows a leak.
    """

    def __init__(self, registry: CollectorRegistry, specs: Sequence[PolledGauge]) -> None:
        by_name = {spec.name: spec for spec in specs}
        gauges = {
            name: Gauge(name, spec.description, list(spec.labels), registry=registry)
            for name, spec in by_name.items()
        }
        self._tasks = Gauge("reverie_tasks", "Tasks of the event loop.", registry=registry)
        self._gauges = [
            (spec, gauges[spec.name].labels(**spec.labels) if spec.labels else gauges[spec.name])
            for spec in specs
        ]

    async def refresh(self) -> None:
        """Sets every gauge to its current value."""
        self._tasks.set(len(asyncio.all_tasks()))
        await asyncio.gather(*(self._read_gauge(spec, gauge) for spec, gauge in self._gauges))

    async def _read_gauge(self, spec: PolledGauge, gauge: Gauge) -> None:
        try:
            async with asyncio.timeout(_READ_TIMEOUT):
                gauge.set(await spec.read())
        except Exception as error:
            # One failed reading must not hide the others.
            log.info("metrics_read_failed", gauge=spec.name, error=type(error).__name__)
            gauge.set(math.nan)


def exemplar() -> dict[str, str] | None:
    """Returns the trace of a measured value, if its spans are exported."""
    context = trace.get_current_span().get_span_context()
    sampled = context.is_valid and context.trace_flags.sampled
    return {"trace_id": trace.format_trace_id(context.trace_id)} if sampled else None


def render_metrics(registry: CollectorRegistry, accept: str = "") -> tuple[bytes, str]:
    """Renders the registry in the requested format; returns the text and its media type.

    The format is OpenMetrics, which alone has exemplars, or the older text format of Prometheus.
    """
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type

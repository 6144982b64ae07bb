"""What goes over the bus, counted for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class BusMeters:
    """Messages out by stream, messages in by consumer, and whether the server is there."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter(
            "reverie_bus_published",
            "Messages put on the bus, by stream and outcome (stored, failed).",
            ["stream", "outcome"],
            registry=registry,
        )
        self._publishing = Histogram(
            "reverie_bus_publish_seconds",
            "Seconds until the server had stored a message.",
            ["stream"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._handled = Counter(
            "reverie_bus_messages",
            "Messages that a consumer took, by outcome (done, retried, buried, handed_back).",
            ["consumer", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "reverie_bus_message_seconds",
            "Seconds that the handling of a message took.",
            ["consumer"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._connected = Gauge(
            "reverie_bus_connected",
            "Whether the server of the bus is reached: 1, or 0.",
            registry=registry,
        )

    def connected(self, told: Callable[[], bool]) -> None:
        """Where to ask whether the server is reached."""
        self._connected.set_function(lambda: float(told()))

    @contextmanager
    def publishing(self, subject: str) -> Iterator[None]:
        """One message on its way to the server."""
        stream, begun, outcome = subject.partition(".")[0], time.perf_counter(), "failed"
        try:
            yield
            outcome = "stored"
        finally:
            self._published.labels(stream, outcome).inc()
            took = time.perf_counter() - begun
            self._publishing.labels(stream).observe(took, _exemplar())

    @contextmanager
    def handling(self, consumer: str) -> Iterator[None]:
        """One message in the hands of a consumer."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - begun
            self._seconds.labels(consumer).observe(took, _exemplar())

    def handled(self, consumer: str, outcome: str) -> None:
        """Counts what became of a message."""
        self._handled.labels(consumer, outcome).inc()


def _exemplar() -> dict[str, str] | None:
    """The trace of the message, where its spans are kept."""
    context = trace.get_current_span().get_span_context()
    sampled = context.is_valid and context.trace_flags.sampled
    return {"trace_id": trace.format_trace_id(context.trace_id)} if sampled else None


UNHEARD = BusMeters(CollectorRegistry())
"""Counts for nobody: of a bus that no service holds."""

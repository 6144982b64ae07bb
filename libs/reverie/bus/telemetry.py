"""Prometheus metrics and OpenTelemetry spans of messages on the bus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_DURATION_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class BusMetrics:
    """Messages out by stream, messages in by consumer, and whether the server is there."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter(
            "reverie_bus_published",
            "Messages put on the bus, by stream and outcome (stored, failed).",
            ["stream", "outcome"],
            registry=registry,
        )
        self._publish_seconds = Histogram(
            "reverie_bus_publish_seconds",
            "Seconds until NATS confirmed a message.",
            ["stream"],
            buckets=_DURATION_BUCKETS,
            registry=registry,
        )
        self._handled = Counter(
            "reverie_bus_messages",
            "Messages that a consumer took, by outcome (done, retried, buried, handed_back).",
            ["consumer", "outcome"],
            registry=registry,
        )
        self._handling_seconds = Histogram(
            "reverie_bus_message_seconds",
            "Seconds that the handling of a message took.",
            ["consumer"],
            buckets=_DURATION_BUCKETS,
            registry=registry,
        )
        self._connected = Gauge(
            "reverie_bus_connected",
            "1 if NATS is connected, else 0.",
            registry=registry,
        )

    def track_connection(self, is_connected: Callable[[], bool]) -> None:
        """Sets the function that returns whether the server is connected."""
        self._connected.set_function(lambda: float(is_connected()))

    @contextmanager
    def time_publish(self, subject: str) -> Iterator[None]:
        """One message on its way to the server."""
        stream, started, outcome = subject.partition(".")[0], time.perf_counter(), "failed"
        try:
            yield
            outcome = "stored"
        finally:
            self._published.labels(stream, outcome).inc()
            elapsed = time.perf_counter() - started
            self._publish_seconds.labels(stream).observe(elapsed, _exemplar())

    @contextmanager
    def time_handling(self, consumer: str) -> Iterator[None]:
        """One message in the hands of a consumer."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            self._handling_seconds.labels(consumer).observe(elapsed, _exemplar())

    def count_handled(self, consumer: str, outcome: str) -> None:
        """Counts what became of a message."""
        self._handled.labels(consumer, outcome).inc()


def _exemplar() -> dict[str, str] | None:
    """The trace of the message, if its spans are recorded."""
    context = trace.get_current_span().get_span_context()
    sampled = context.is_valid and context.trace_flags.sampled
    return {"trace_id": trace.format_trace_id(context.trace_id)} if sampled else None


UNREGISTERED_METRICS = BusMetrics(CollectorRegistry())
"""Metrics that no registry reads: for a bus outside a service."""


TRACER = trace.get_tracer("reverie.bus")


def _attributes(subject: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.destination.name": subject,
    }


@contextmanager
def publish_span(subject: str, headers: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A producer span; yields the headers to send.

    A stored `traceparent` (of the write that made the event) wins over the current one: a relay
    that publishes later continues the trace of the writer. There is no span in a request that
    nobody keeps the spans of.
    """
    carrier = dict(headers)
    has_trace = "traceparent" in carrier
    current = trace.get_current_span().get_span_context()
    if has_trace and current.is_valid and not current.trace_flags.sampled:
        yield carrier
        return
    with TRACER.start_as_current_span(
        "bus publish",
        context=extract(carrier) if has_trace else None,
        kind=SpanKind.PRODUCER,
        attributes=_attributes(subject, "publish"),
        record_exception=False,
    ):
        if not has_trace:
            inject(carrier)
        yield carrier


@contextmanager
def process_span(consumer: str, subject: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """A consumer span that continues the trace found in the headers."""
    with TRACER.start_as_current_span(
        f"{consumer} process",
        context=extract(dict(headers)),
        kind=SpanKind.CONSUMER,
        attributes=_attributes(subject, "process") | {"messaging.consumer.group.name": consumer},
        record_exception=False,
    ) as span:
        yield span


def mark_span_failed(span: Span, error: BaseException) -> None:
    """Mark the span; only the type's name, since a text may quote what was stored."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))

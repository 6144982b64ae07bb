"""One trace across the bus: the W3C context travels in the headers of every message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

TRACER = trace.get_tracer("reverie.bus")


def _attributes(subject: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "nats",
        "messaging.operation.name": operation,
        "messaging.destination.name": subject,
    }


@contextmanager
def publishing(subject: str, headers: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A producer span; yields the headers to send.

    A stored `traceparent` (of the write that made the event) wins over the current one: a relay
    that publishes later continues the trace of the writer. There is no span in a request that
    nobody keeps the spans of.
    """
    carried = dict(headers)
    stored = "traceparent" in carried
    around = trace.get_current_span().get_span_context()
    if stored and around.is_valid and not around.trace_flags.sampled:
        yield carried
        return
    with TRACER.start_as_current_span(
        "bus publish",
        context=extract(carried) if stored else None,
        kind=SpanKind.PRODUCER,
        attributes=_attributes(subject, "publish"),
        record_exception=False,
    ):
        if not stored:
            inject(carried)
        yield carried


@contextmanager
def receiving(consumer: str, subject: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """A consumer span that continues the trace found in the headers."""
    with TRACER.start_as_current_span(
        f"{consumer} process",
        context=extract(dict(headers)),
        kind=SpanKind.CONSUMER,
        attributes=_attributes(subject, "process") | {"messaging.consumer.group.name": consumer},
        record_exception=False,
    ) as span:
        yield span


def failed(span: Span, error: BaseException) -> None:
    """Mark the span; only the type's name, since a text may quote what was stored."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))

"""Spans and metrics of calls over transports other than plain HTTP (gRPC, MCP)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.runtime.observability.metrics import LATENCY_BUCKETS, exemplar
from reverie.runtime.observability.tracing import extract_context, mark_failed

_TRACER = trace.get_tracer("reverie.calls")


@dataclass
class CallOutcome:
    """The outcome of a call: `ok` or the problem code, and whether the server is at fault."""

    code: str = "ok"
    failed: bool = False


class CallMetrics:
    """Rate, errors and duration of the calls of one interface."""

    def __init__(self, registry: CollectorRegistry, transport: str) -> None:
        self._transport = transport
        self._calls = Counter(
            f"reverie_{transport}_calls",
            f"Calls over {transport}, by how they ended.",
            ["call", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            f"reverie_{transport}_call_seconds",
            f"Seconds until a call over {transport} was answered.",
            ["call"],
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self._open = Gauge(
            f"reverie_{transport}_calls_open",
            f"Calls over {transport} in progress, including streams.",
            ["call"],
            registry=registry,
        )

    @contextmanager
    def trace_call(self, name: str, headers: Mapping[str, str]) -> Iterator[CallOutcome]:
        """Traces and counts one call; continues the trace of `headers`, if they have one.

        `name`: one of the interface's own names, never one that a caller chose.
        """
        with _TRACER.start_as_current_span(
            f"{self._transport} {name}",
            context=extract_context(headers) if "traceparent" in headers else None,
            kind=trace.SpanKind.SERVER,
            attributes={"rpc.system.name": self._transport, "rpc.method": name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            outcome = CallOutcome()
            try:
                with self.time_call(name, outcome):
                    yield outcome
            finally:
                span.set_attribute("rpc.response.status_code", outcome.code)
                if outcome.failed:
                    mark_failed(span, outcome.code)

    @contextmanager
    def time_call(self, name: str, outcome: CallOutcome | None = None) -> Iterator[CallOutcome]:
        """One call, counted and timed, within the span that is there."""
        started = time.perf_counter()
        with self.count_call(name, outcome or CallOutcome()) as tracked:
            try:
                yield tracked
            finally:
                self._seconds.labels(name).observe(time.perf_counter() - started, exemplar())

    @contextmanager
    def count_call(self, name: str, outcome: CallOutcome) -> Iterator[CallOutcome]:
        """A call that is counted without being timed: a stream lasts as long as it likes."""
        self._open.labels(name).inc()
        try:
            yield outcome
        except Exception as error:
            if outcome.code == "ok":
                outcome.code, outcome.failed = type(error).__name__, True
            raise
        finally:
            self._open.labels(name).dec()
            self._calls.labels(name, outcome.code).inc()

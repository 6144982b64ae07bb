"""The calls of doors beside HTTP (gRPC, MCP): a span around each, counted for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.runtime.metrics import SECONDS, exemplar
from reverie.runtime.telemetry import extract, mark_failed

_TRACER = trace.get_tracer("reverie.calls")


@dataclass
class Outcome:
    """How a call ended: `ok` or the code of what was wrong, and whether that is our fault."""

    code: str = "ok"
    failed: bool = False


class CallMeters:
    """Rate, errors and duration of the calls of one door."""

    def __init__(self, registry: CollectorRegistry, door: str) -> None:
        self._door = door
        self._calls = Counter(
            f"reverie_{door}_calls",
            f"Calls over {door}, by how they ended.",
            ["call", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            f"reverie_{door}_call_seconds",
            f"Seconds until a call over {door} was answered.",
            ["call"],
            buckets=SECONDS,
            registry=registry,
        )
        self._open = Gauge(
            f"reverie_{door}_calls_open",
            f"Calls over {door} under way, streams among them.",
            ["call"],
            registry=registry,
        )

    @contextmanager
    def call(self, name: str, headers: Mapping[str, str]) -> Iterator[Outcome]:
        """One call and its span; where `headers` carry a trace, it is continued.

        `name`: one of the door's own, never what a caller made up.
        """
        with _TRACER.start_as_current_span(
            f"{self._door} {name}",
            context=extract(headers) if "traceparent" in headers else None,
            kind=trace.SpanKind.SERVER,
            attributes={"rpc.system.name": self._door, "rpc.method": name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            outcome = Outcome()
            try:
                with self.timed(name, outcome):
                    yield outcome
            finally:
                span.set_attribute("rpc.response.status_code", outcome.code)
                if outcome.failed:
                    mark_failed(span, outcome.code)

    @contextmanager
    def timed(self, name: str, outcome: Outcome | None = None) -> Iterator[Outcome]:
        """One call, counted and timed, within the span that is there."""
        begun = time.perf_counter()
        with self.open(name, outcome or Outcome()) as known:
            try:
                yield known
            finally:
                self._seconds.labels(name).observe(time.perf_counter() - begun, exemplar())

    @contextmanager
    def open(self, name: str, outcome: Outcome) -> Iterator[Outcome]:
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

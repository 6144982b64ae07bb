"""Prometheus metrics of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.metrics import Histogram as OtelHistogram
from opentelemetry.metrics import NoOpHistogram, NoOpMeter, NoOpMeterProvider
from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry, Gauge, Histogram
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

from reverie.runtime.observability.metrics import exemplar

_LABELS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.token.type",
)
"""Other attributes would make a series for each answer, or repeat these."""


class PrometheusMeters(NoOpMeterProvider):
    """Gives meters whose histograms are those of a Prometheus registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def get_meter(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Any = None,
    ) -> NoOpMeter:
        """A meter of that name."""
        return _PrometheusMeter(name, self._registry)


class _PrometheusMeter(NoOpMeter):
    def __init__(self, name: str, registry: CollectorRegistry) -> None:
        super().__init__(name)
        self._registry = registry

    def create_histogram(
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> OtelHistogram:
        buckets = explicit_bucket_boundaries_advisory or Histogram.DEFAULT_BUCKETS
        kept = Histogram(
            name.replace(".", "_") + ("_seconds" if unit == "s" else ""),
            description,
            [label.replace(".", "_") for label in _LABELS],
            buckets=buckets,
            registry=self._registry,
        )
        return _PrometheusHistogram(name, kept)


class _PrometheusHistogram(NoOpHistogram):
    def __init__(self, name: str, kept: Histogram) -> None:
        super().__init__(name)
        self._kept = kept

    def record(
        self,
        amount: float,
        attributes: Mapping[str, Any] | None = None,
        context: Any = None,
    ) -> None:
        known = attributes or {}
        self._kept.labels(*(str(known.get(label, "")) for label in _LABELS)).observe(amount)


_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)


class EngineMetrics:
    """Turns of this process by outcome, and the instrumentation of their models."""

    def __init__(self, registry: CollectorRegistry, tracers: TracerProvider | None = None) -> None:
        self._seconds = Histogram(
            "reverie_engine_turn_seconds",
            "Seconds per turn, by outcome.",
            ["outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.instrumentation = Instrumentation(
            settings=InstrumentationSettings(
                tracer_provider=tracers,
                meter_provider=PrometheusMeters(registry),
                include_content=False,
                include_binary_content=False,
                include_model_request_parameters=False,
            )
        )
        """Spans and metrics of models by the GenAI conventions, without content."""
        self.running = Gauge(
            "reverie_engine_turns_running", "Turns that this process runs.", registry=registry
        )

    def observe_turn(self, outcome: str, seconds: float) -> None:
        """Counts a turn that ended, or that was left to another worker."""
        self._seconds.labels(outcome).observe(seconds, exemplar())

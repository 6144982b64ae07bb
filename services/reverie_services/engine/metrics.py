"""Prometheus metrics of the engine."""

from __future__ import annotations

from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry, Gauge, Histogram
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

from reverie.runtime.observability.metrics import exemplar
from reverie_services.engine.model_metrics import PrometheusMeters

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

"""Metrics of models by the GenAI conventions of OpenTelemetry, as Prometheus names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.metrics import Histogram as OtelHistogram
from opentelemetry.metrics import NoOpHistogram, NoOpMeter, NoOpMeterProvider
from prometheus_client import CollectorRegistry, Histogram

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

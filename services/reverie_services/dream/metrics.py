"""Prometheus metrics of dreams: durations, memories, turns, and what wrote the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from reverie.runtime.observability.metrics import exemplar
from reverie_services.dream.extractor import RecordOutcome

_DURATION_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class DreamMetrics:
    """Counters and a histogram of this process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "reverie_dream_seconds",
            "Seconds per dream, by outcome.",
            ["outcome"],
            buckets=_DURATION_BUCKETS,
            registry=registry,
        )
        self._segments = Counter(
            "reverie_dream_segments", "Segments written, by kind.", ["kind"], registry=registry
        )
        self._turns = Counter("reverie_dream_turns", "Turns digested.", registry=registry)
        self._records = Counter(
            "reverie_dream_records",
            "Subtopics digested, by what wrote the record: rules or model; else why the rules did.",
            ["outcome"],
            registry=registry,
        )
        self._statements = Counter(
            "reverie_dream_model_statements",
            "Statements of a language model, by result: kept, or why they were dropped.",
            ["result"],
            registry=registry,
        )

    def observe_dream(self, outcome: str, seconds: float) -> None:
        """Counts a dream that ended as done, again, retry, parked or lost."""
        self._seconds.labels(outcome).observe(seconds, exemplar())

    def count_digested(self, turns: int, kinds: Iterable[str]) -> None:
        """Counts digested turns, and the segments built from them by kind."""
        self._turns.inc(turns)
        for kind in kinds:
            self._segments.labels(kind).inc()

    def count_records(self, outcomes: Mapping[RecordOutcome, int]) -> None:
        """Counts subtopics by what wrote their record."""
        for outcome, count in outcomes.items():
            self._records.labels(outcome).inc(count)

    def count_statements(self, results: Mapping[str, int]) -> None:
        """Counts statements of a model: kept, and by objection."""
        for result, count in results.items():
            if count:
                self._statements.labels(result).inc(count)

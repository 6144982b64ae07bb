"""Prometheus metrics of reads: counts, degraded components, and stage durations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.runtime.limits.concurrency import ConcurrencyLimiter
from reverie.runtime.observability.metrics import LATENCY_BUCKETS, exemplar

_COMPONENTS = ("words", "meaning", "sparse", "turns", "graph", "store", "session")
"""Parts that every read may lack; created at start, so that a rate is known from the first."""


class RecallMetrics:
    """Metrics of reads, and how many recalls run and wait."""

    def __init__(self, registry: CollectorRegistry, limiter: ConcurrencyLimiter) -> None:
        self._reads = cache(
            Counter(
                "reverie_reads",
                "Reads answered, by kind (recall, preflow, context).",
                ["kind"],
                registry=registry,
            ).labels
        )
        self._degraded = cache(
            Counter(
                "reverie_reads_degraded",
                "Reads that were degraded, by kind.",
                ["kind"],
                registry=registry,
            ).labels
        )
        self._missing = cache(
            Counter(
                "reverie_reads_missing",
                "Parts that were missing in reads, by name.",
                ["part"],
                registry=registry,
            ).labels
        )
        for component in _COMPONENTS:
            self._missing(component)
        self._stages = cache(
            Histogram(
                "reverie_recall_stage_seconds",
                "Seconds that a stage of a recall took.",
                ["stage"],
                buckets=LATENCY_BUCKETS,
                registry=registry,
            ).labels
        )
        self._rejections = Counter(
            "reverie_recalls_refused",
            "Recalls refused because the queue was full or they waited too long.",
            registry=registry,
        )
        Gauge("reverie_recalls_running", "Running recalls.", registry=registry).set_function(
            lambda: limiter.running
        )
        Gauge("reverie_recalls_waiting", "Waiting recalls.", registry=registry).set_function(
            lambda: limiter.queued
        )
        Gauge("reverie_recalls_parallel", "Limit of concurrent recalls.", registry=registry).set(
            limiter.limits.max_concurrent
        )

    def observe_read(self, kind: str, missing: Collection[str]) -> None:
        """Counts one read, and what it lacked."""
        self._reads(kind).inc()
        # Created with the first read, so that a rate is known from the first occurrence.
        self._degraded(kind).inc(1 if missing else 0)
        for component in missing:
            self._missing(component).inc()

    def observe_stages(self, stages: Mapping[str, float]) -> None:
        """Counts what the stages of a recall took, in milliseconds."""
        for stage, milliseconds in stages.items():
            self._stages(stage).observe(milliseconds / 1000, exemplar())

    def count_rejection(self) -> None:
        """Counts one that was not let in."""
        self._rejections.inc()

"""What recall tells Prometheus of its reads: how many lacked something, and what took how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.recall.gate import Gate
from reverie.runtime.metrics import SECONDS, exemplar

_PARTS = ("words", "meaning", "sparse", "turns", "graph", "store", "session")
"""Those that every read may lack; named from the start, so that a rate is told from the first."""


class RecallMeters:
    """Counters of this gateway, and how full its gate is."""

    def __init__(self, registry: CollectorRegistry, gate: Gate) -> None:
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
                "Reads answered without what one of their parts would have said.",
                ["kind"],
                registry=registry,
            ).labels
        )
        self._missing = cache(
            Counter(
                "reverie_reads_missing",
                "Parts of reads that could not answer, by name.",
                ["part"],
                registry=registry,
            ).labels
        )
        for part in _PARTS:
            self._missing(part)
        self._stages = cache(
            Histogram(
                "reverie_recall_stage_seconds",
                "Seconds that a stage of a recall took.",
                ["stage"],
                buckets=SECONDS,
                registry=registry,
            ).labels
        )
        self._refused = Counter(
            "reverie_recalls_refused",
            "Recalls refused, for too many waited or one waited too long.",
            registry=registry,
        )
        _gauge(registry, "running", "Recalls that are carried out.").set_function(
            lambda: gate.running
        )
        _gauge(registry, "waiting", "Recalls that wait for their turn.").set_function(
            lambda: gate.waiting
        )
        _gauge(registry, "parallel", "Recalls that may be carried out at once.").set(gate.parallel)

    def answered(self, kind: str, missing: Collection[str]) -> None:
        """Counts one read, and what it lacked."""
        self._reads(kind).inc()
        # Made with the first read, so that a rate of it can be told from the first lack on.
        self._degraded(kind).inc(1 if missing else 0)
        for part in missing:
            self._missing(part).inc()

    def took(self, stages: Mapping[str, float]) -> None:
        """Counts what the stages of a recall took, in milliseconds."""
        for stage, milliseconds in stages.items():
            self._stages(stage).observe(milliseconds / 1000, exemplar())

    def refused(self) -> None:
        """Counts one that was not let in."""
        self._refused.inc()


def _gauge(registry: CollectorRegistry, name: str, text: str) -> Gauge:
    return Gauge(f"reverie_recalls_{name}", text, registry=registry)

"""Scrapes the services' `/metrics`, and computes rates and queue lengths from it."""

from __future__ import annotations

import math
import time
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reverie.embedded.probe import create_unverified_context

Series = tuple[str, frozenset[tuple[str, str]]]

SCRAPE_TIMEOUT = 2.0
"""That a service may take to tell."""
IGNORED_ROUTES = frozenset({"/health", "/ready", "/metrics"})
"""Routes that are asked by machines, and are no work."""


@dataclass(frozen=True)
class MetricsSnapshot:
    """What one service told, and when (seconds of this process's clock); nothing where it did not
    answer."""

    values: Mapping[Series, float] = field(default_factory=dict)
    at: float = 0.0

    def iter_series(self, name: str, **labels: str) -> Iterable[tuple[dict[str, str], float]]:
        """The series of a name that have these labels."""
        for (series_name, series_labels), value in self.values.items():
            if series_name == name and labels.items() <= set(series_labels):
                yield dict(series_labels), value

    def max_value(self, name: str, **labels: str) -> float | None:
        """The largest value of a name, None where nobody tells it."""
        candidates = [
            value for _, value in self.iter_series(name, **labels) if not math.isnan(value)
        ]
        return max(candidates, default=None)


def scrape_all(urls: Mapping[str, str]) -> dict[str, MetricsSnapshot]:
    """All services at once."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(urls, pool.map(scrape, urls.values()), strict=True))


def scrape(url: str) -> MetricsSnapshot:
    """What the service at a base URL tells now."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        with urllib.request.urlopen(  # noqa: S310
            f"{url}/metrics", timeout=SCRAPE_TIMEOUT, context=create_unverified_context()
        ) as response:
            text = response.read().decode()
    except (OSError, ValueError):
        return MetricsSnapshot()
    families = text_string_to_metric_families(text)
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    return MetricsSnapshot(values, time.monotonic())


@dataclass(frozen=True)
class RequestRates:
    """What went through a service between two looks: a second, failed ones among it, and the
    seconds within which 95 of 100 were answered."""

    requests: float
    failed: float
    p95: float | None


def compute_rates(previous: MetricsSnapshot, current: MetricsSnapshot) -> RequestRates | None:
    """None where it did not answer twice, or began anew in between."""
    elapsed = current.at - previous.at
    if not previous.values or not current.values or elapsed <= 0:
        return None
    requests = failed = 0.0
    for labels, value in current.iter_series("reverie_http_requests_total"):
        if labels["route"] in IGNORED_ROUTES:
            continue
        increase = value - previous.values.get(
            _series_key("reverie_http_requests_total", labels), 0.0
        )
        requests += increase
        failed += increase if labels["status"].startswith("5") else 0.0
    if requests < 0:
        return None
    return RequestRates(requests / elapsed, failed / elapsed, _percentile_95(previous, current))


def _percentile_95(previous: MetricsSnapshot, current: MetricsSnapshot) -> float | None:
    """By the buckets of all routes together: the upper end of that which holds it."""
    name = "reverie_http_request_seconds_bucket"
    counts: dict[float, float] = {}
    for labels, value in current.iter_series(name):
        if labels["route"] in IGNORED_ROUTES:
            continue
        increase = value - previous.values.get(_series_key(name, labels), 0.0)
        counts[float(labels["le"])] = counts.get(float(labels["le"]), 0.0) + increase
    total = counts.get(math.inf, 0.0)
    if total <= 0:
        return None
    return min(bound for bound, count in counts.items() if count >= 0.95 * total)


def _series_key(name: str, labels: Mapping[str, str]) -> Series:
    return name, frozenset(labels.items())


WAITING_METRICS = (
    ("events not yet on the bus", "reverie_outbox_waiting"),
    ("memories not yet derived from", "reverie_memories_unenriched"),
    ("git changes not yet applied", "reverie_changes_unprocessed"),
    ("dreams that wait", "reverie_dreams_queued"),
    ("dreams that run", "reverie_dreams_running"),
    ("dreams given up", "reverie_dreams_parked"),
    ("dead letters", "reverie_dead_letters"),
)
OLDEST_AGE_METRICS = {
    "reverie_outbox_waiting": "reverie_outbox_oldest_seconds",
    "reverie_dreams_queued": "reverie_dreams_oldest_seconds",
}


def list_waiting(scrapes: Mapping[str, MetricsSnapshot]) -> list[tuple[str, float, float | None]]:
    """What waits, how much of it, and for how many seconds the oldest does; as far as it is told.

    Replicas tell of the same queues, so the largest number counts.
    """
    entries = []
    for label, name in WAITING_METRICS:
        count = _largest(scrapes, name)
        if count is not None:
            age = (
                _largest(scrapes, OLDEST_AGE_METRICS[name])
                if count and name in OLDEST_AGE_METRICS
                else None
            )
            entries.append((label, count, age))
    for consumer, lag in sorted(_consumer_lags(scrapes).items()):
        entries.append((f"messages for {consumer}", lag, None))
    return entries


def _largest(scrapes: Mapping[str, MetricsSnapshot], name: str) -> float | None:
    candidates = [
        value for snapshot in scrapes.values() if (value := snapshot.max_value(name)) is not None
    ]
    return max(candidates, default=None)


def _consumer_lags(scrapes: Mapping[str, MetricsSnapshot]) -> dict[str, float]:
    lags: dict[str, float] = {}
    for snapshot in scrapes.values():
        for labels, value in snapshot.iter_series("reverie_bus_lag"):
            if not math.isnan(value):
                lags[labels["consumer"]] = max(value, lags.get(labels["consumer"], 0.0))
    return lags

"""Scrapes the services' `/metrics`, and computes rates and queue lengths from it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reverie.embedded.probe import fetch

Series = tuple[str, frozenset[tuple[str, str]]]

SCRAPE_TIMEOUT = 2.0
"""Timeout for the response of a service, in seconds."""
IGNORED_ROUTES = frozenset({"/health", "/ready", "/metrics"})
"""Routes that monitoring calls, which are not counted as requests."""


@dataclass(frozen=True)
class MetricsSnapshot:
    """The metrics of one service and their time (monotonic); empty if it did not answer."""

    values: Mapping[Series, float] = field(default_factory=dict)
    at: float = 0.0

    def iter_series(self, name: str, **labels: str) -> Iterable[tuple[dict[str, str], float]]:
        """The series of this name that have these labels."""
        for (series_name, series_labels), value in self.values.items():
            if series_name == name and labels.items() <= set(series_labels):
                yield dict(series_labels), value

    def max_value(self, name: str, **labels: str) -> float | None:
        """Returns the largest value of this name; None if there is none."""
        values = (value for _, value in self.iter_series(name, **labels) if not math.isnan(value))
        return max(values, default=None)


def scrape_all(urls: Mapping[str, str]) -> dict[str, MetricsSnapshot]:
    """The metrics of all services, scraped at once."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(urls, pool.map(scrape, urls.values()), strict=True))


def scrape(url: str) -> MetricsSnapshot:
    """The metrics of the service at a base URL."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        status, body = fetch(url, "/metrics", SCRAPE_TIMEOUT)
    except OSError:
        return MetricsSnapshot()
    if status != 200:
        return MetricsSnapshot()
    families = text_string_to_metric_families(body.decode())
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    return MetricsSnapshot(values, time.monotonic())


@dataclass(frozen=True)
class RequestRates:
    """Requests and failed requests per second, and the 95th percentile of the latency."""

    requests: float
    failed: float
    p95: float | None


def compute_rates(previous: MetricsSnapshot, current: MetricsSnapshot) -> RequestRates | None:
    """Returns the rates between two scrapes; None if one failed, or if the service restarted."""
    elapsed = current.at - previous.at
    if not previous.values or not current.values or elapsed <= 0:
        return None
    requests = failed = 0.0
    for labels, value in current.iter_series("reverie_http_requests_total"):
        if labels["route"] in IGNORED_ROUTES:
            continue
        key = _series_key("reverie_http_requests_total", labels)
        increase = value - previous.values.get(key, 0.0)
        requests += increase
        failed += increase if labels["status"].startswith("5") else 0.0
    if requests < 0:
        return None
    return RequestRates(requests / elapsed, failed / elapsed, _percentile_95(previous, current))


def _percentile_95(previous: MetricsSnapshot, current: MetricsSnapshot) -> float | None:
    """Returns the upper bound of the bucket that contains the percentile, over all routes."""
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
    ("events not yet published", "reverie_outbox_waiting"),
    ("memories not yet enriched", "reverie_memories_unenriched"),
    ("git changes not yet applied", "reverie_changes_unprocessed"),
    ("queued dreams", "reverie_dreams_queued"),
    ("running dreams", "reverie_dreams_running"),
    ("failed dreams", "reverie_dreams_parked"),
    ("failed memories", "reverie_memories_failed"),
    ("failed git changes", "reverie_changes_failed"),
    ("dead letters", "reverie_dead_letters"),
)
FAILED_WORK = frozenset({"dead letters", "failed dreams", "failed memories", "failed git changes"})
"""Queues of what was given up: nothing of them may wait."""
OLDEST_AGE_METRICS = {
    "reverie_outbox_waiting": "reverie_outbox_oldest_seconds",
    "reverie_dreams_queued": "reverie_dreams_oldest_seconds",
}


def list_failed(scrapes: Mapping[str, MetricsSnapshot]) -> dict[str, int]:
    """How much of each kind of work was given up; what was not is left out."""
    return {
        text: int(count)
        for text, count, _ in list_waiting(scrapes)
        if text in FAILED_WORK and count > 0
    }


def list_waiting(scrapes: Mapping[str, MetricsSnapshot]) -> list[tuple[str, float, float | None]]:
    """Each queue with its length, and the age of its oldest entry in seconds.

    Replicas report the same queues, so the largest number counts.
    """

    def largest(name: str | None) -> float | None:
        values = (snapshot.max_value(name) for snapshot in scrapes.values() if name)
        return max((value for value in values if value is not None), default=None)

    entries = []
    for label, name in WAITING_METRICS:
        count = largest(name)
        if count is not None:
            age = largest(OLDEST_AGE_METRICS.get(name)) if count else None
            entries.append((label, count, age))
    lags: dict[str, float] = {}
    for snapshot in scrapes.values():
        for labels, value in snapshot.iter_series("reverie_bus_lag"):
            if not math.isnan(value):
                lags[labels["consumer"]] = max(value, lags.get(labels["consumer"], 0.0))
    return entries + [(f"messages for {name}", lag, None) for name, lag in sorted(lags.items())]

"""What services tell of themselves at `/metrics`, between two looks."""

from __future__ import annotations

import math
import time
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reverie.embedded.probe import believing

Series = tuple[str, frozenset[tuple[str, str]]]

SECONDS = 2.0
"""That a service may take to tell."""
QUIET = frozenset({"/health", "/ready", "/metrics"})
"""Routes that are asked by machines, and are no work."""


@dataclass(frozen=True)
class Scrape:
    """What one service told, and when (seconds of this process's clock); nothing where it did not
    answer."""

    values: Mapping[Series, float] = field(default_factory=dict)
    at: float = 0.0

    def each(self, name: str, **labels: str) -> Iterable[tuple[dict[str, str], float]]:
        """The series of a name that have these labels."""
        for (known, given), value in self.values.items():
            if known == name and labels.items() <= set(given):
                yield dict(given), value

    def one(self, name: str, **labels: str) -> float | None:
        """The largest value of a name, None where nobody tells it."""
        found = [v for _, v in self.each(name, **labels) if not math.isnan(v)]
        return max(found, default=None)


def scrape_all(urls: Mapping[str, str]) -> dict[str, Scrape]:
    """All services at once."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(urls, pool.map(scrape, urls.values()), strict=True))


def scrape(url: str) -> Scrape:
    """What the service at a base URL tells now."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        with urllib.request.urlopen(  # noqa: S310
            f"{url}/metrics", timeout=SECONDS, context=believing()
        ) as answer:
            text = answer.read().decode()
    except (OSError, ValueError):
        return Scrape()
    families = text_string_to_metric_families(text)
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    return Scrape(values, time.monotonic())


@dataclass(frozen=True)
class Flow:
    """What went through a service between two looks: a second, failed ones among it, and the
    seconds within which 95 of 100 were answered."""

    requests: float
    failed: float
    p95: float | None


def flow(before: Scrape, now: Scrape) -> Flow | None:
    """None where it did not answer twice, or began anew in between."""
    passed = now.at - before.at
    if not before.values or not now.values or passed <= 0:
        return None
    requests = failed = 0.0
    for labels, value in now.each("reverie_http_requests_total"):
        if labels["route"] in QUIET:
            continue
        more = value - before.values.get(_key("reverie_http_requests_total", labels), 0.0)
        requests += more
        failed += more if labels["status"].startswith("5") else 0.0
    if requests < 0:
        return None
    return Flow(requests / passed, failed / passed, _p95(before, now))


def _p95(before: Scrape, now: Scrape) -> float | None:
    """By the buckets of all routes together: the upper end of that which holds it."""
    name = "reverie_http_request_seconds_bucket"
    counts: dict[float, float] = {}
    for labels, value in now.each(name):
        if labels["route"] in QUIET:
            continue
        more = value - before.values.get(_key(name, labels), 0.0)
        counts[float(labels["le"])] = counts.get(float(labels["le"]), 0.0) + more
    whole = counts.get(math.inf, 0.0)
    if whole <= 0:
        return None
    return min(bound for bound, count in counts.items() if count >= 0.95 * whole)


def _key(name: str, labels: Mapping[str, str]) -> Series:
    return name, frozenset(labels.items())


WAITING = (
    ("events not yet on the bus", "reverie_outbox_waiting"),
    ("memories not yet derived from", "reverie_memories_unenriched"),
    ("git changes not yet applied", "reverie_changes_unprocessed"),
    ("dreams that wait", "reverie_dreams_queued"),
    ("dreams that run", "reverie_dreams_running"),
    ("dreams given up", "reverie_dreams_parked"),
    ("dead letters", "reverie_dead_letters"),
)
AGES = {
    "reverie_outbox_waiting": "reverie_outbox_oldest_seconds",
    "reverie_dreams_queued": "reverie_dreams_oldest_seconds",
}


def waiting(scrapes: Mapping[str, Scrape]) -> list[tuple[str, float, float | None]]:
    """What waits, how much of it, and for how many seconds the oldest does; as far as it is told.

    Replicas tell of the same queues, so the largest number counts.
    """
    found = []
    for text, name in WAITING:
        told = _largest(scrapes, name)
        if told is not None:
            age = _largest(scrapes, AGES[name]) if told and name in AGES else None
            found.append((text, told, age))
    for consumer, lag in sorted(_lags(scrapes).items()):
        found.append((f"messages for {consumer}", lag, None))
    return found


def _largest(scrapes: Mapping[str, Scrape], name: str) -> float | None:
    found = [value for one in scrapes.values() if (value := one.one(name)) is not None]
    return max(found, default=None)


def _lags(scrapes: Mapping[str, Scrape]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in scrapes.values():
        for labels, value in one.each("reverie_bus_lag"):
            if not math.isnan(value):
                found[labels["consumer"]] = max(value, found.get(labels["consumer"], 0.0))
    return found

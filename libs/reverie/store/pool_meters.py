"""The pools of connections, counted for Prometheus: how full they are, and what for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Watched(Protocol):
    """A pool of connections: how many are lent, how many are free, and how many there may be."""

    @property
    def busy(self) -> int: ...
    @property
    def idle(self) -> int: ...
    @property
    def limit(self) -> int: ...


class Told(NamedTuple):
    """What is counted of one pool: seconds of waiting and of use, and the times that it failed."""

    waits: Histogram
    held: Histogram
    failed: Counter


class PoolMeters(Collector):
    """Of each pool, by name (main, readers): its connections now, and what they were used for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: dict[str, Watched] = {}
        self._waits = Histogram(
            "reverie_postgres_wait_seconds",
            "Seconds until a connection was free.",
            ["pool"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._held = Histogram(
            "reverie_postgres_held_seconds",
            "Seconds that a connection was held.",
            ["pool"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._failed = Counter(
            "reverie_postgres_failures",
            "Times that Postgres was away, or gave no connection in time.",
            ["pool"],
            registry=registry,
        )
        registry.register(self)

    def watch(self, name: str, pool: Watched) -> Told:
        """From now on the pool's connections are told of; what is told of one that is lent."""
        self._pools[name] = pool
        return Told(self._waits.labels(name), self._held.labels(name), self._failed.labels(name))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What the pools hold now."""
        size = GaugeMetricFamily(
            "reverie_postgres_connections",
            "Connections of the pool, busy and idle.",
            labels=["pool", "state"],
        )
        limit = GaugeMetricFamily(
            "reverie_postgres_connections_limit",
            "Connections that the pool may open.",
            labels=["pool"],
        )
        for name, pool in self._pools.items():
            size.add_metric([name, "busy"], pool.busy)
            size.add_metric([name, "idle"], pool.idle)
            limit.add_metric([name], pool.limit)
        yield size
        yield limit

"""The pools of connections, counted for Prometheus: how full they are, and what for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class PoolMeters(Collector):
    """Of each pool, by name (main, readers): its connections now, and what they were used for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: dict[str, Any] = {}
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

    def watch(self, name: str, pool: Any) -> None:
        """From now on the pool's connections are told of."""
        self._pools[name] = pool
        self._failed.labels(name)

    @contextmanager
    def waiting(self, name: str) -> Iterator[float]:
        """Gives when the wait began; its end is told by `free`."""
        try:
            yield time.perf_counter()
        except Exception:
            self._failed.labels(name).inc()
            raise

    def free(self, name: str, begun: float) -> float:
        """A connection is there; gives when."""
        now = time.perf_counter()
        self._waits.labels(name).observe(now - begun)
        return now

    def given_back(self, name: str, since: float) -> None:
        """The connection is free again."""
        self._held.labels(name).observe(time.perf_counter() - since)

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
            idle = pool.get_idle_size()
            size.add_metric([name, "busy"], pool.get_size() - idle)
            size.add_metric([name, "idle"], idle)
            limit.add_metric([name], pool.get_max_size())
        yield size
        yield limit

"""Lends connections of an asyncpg pool within a timeout, and measures them for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import asyncpg
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class PoolMetricSet(NamedTuple):
    """The metrics of one pool: seconds of waiting and of use, and the number of failures."""

    wait_seconds: Histogram
    use_seconds: Histogram
    failures: Counter


class PoolMetrics(Collector):
    """Of each pool, by name (main, readers): its connections now, and what they were used for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: dict[str, ConnectionPool] = {}
        self._waits = Histogram(
            "reverie_postgres_wait_seconds",
            "Seconds until a connection was free.",
            ["pool"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._held = Histogram(
            "reverie_postgres_held_seconds",
            "Seconds that a connection was held.",
            ["pool"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._failed = Counter(
            "reverie_postgres_failures",
            "Failed attempts to get a connection to Postgres.",
            ["pool"],
            registry=registry,
        )
        registry.register(self)

    def observe(self, name: str, pool: ConnectionPool) -> PoolMetricSet:
        """Adds the pool to the metrics; returns the metrics for its acquired connections."""
        self._pools[name] = pool
        return PoolMetricSet(
            self._waits.labels(name), self._held.labels(name), self._failed.labels(name)
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Collects the current state of the pools."""
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


Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class ConnectionPool:
    """Lends the connections of a pool, each within a timeout."""

    def __init__(
        self, name: str, pool: asyncpg.Pool[asyncpg.Record], timeout: float, metrics: PoolMetrics
    ) -> None:
        """`timeout`: maximum seconds to wait for a connection, and to return it."""
        self._pool, self._timeout = pool, timeout
        self._tasks: set[asyncio.Task[Any]] = set()
        self._metrics = metrics.observe(name, self)

    @property
    def busy(self) -> int:
        """Connections that are lent."""
        return self._pool.get_size() - self.idle

    @property
    def idle(self) -> int:
        """Connections that nobody uses."""
        return self._pool.get_idle_size()

    @property
    def limit(self) -> int:
        """Connections that may be open."""
        return self._pool.get_max_size()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection. Raises `TimeoutError`, and what opening one raises."""
        started = perf_counter()
        try:
            # Its own timeout would take a task for each.
            async with asyncio.timeout(self._timeout):
                connection = await self._pool.acquire()
        except Exception:
            self._metrics.failures.inc()
            raise
        since = perf_counter()
        self._metrics.wait_seconds.observe(since - started)
        try:
            yield connection  # type: ignore[misc]
        finally:
            await self._pool.release(connection, timeout=self._timeout)
            self._metrics.use_seconds.observe(perf_counter() - since)

    async def fetch_row(self, sql: str, timeout_seconds: float) -> asyncpg.Record | None:
        """Returns the first row of a statement.

        Raises as `acquire`, and `TimeoutError` after `timeout_seconds`. Closing a connection to a
        server that stopped responding takes longer and continues in the background.
        """

        async def query() -> asyncpg.Record | None:
            async with self.acquire() as connection:
                return await connection.fetchrow(sql)

        task = asyncio.create_task(query())
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        try:
            await asyncio.wait({task}, timeout=timeout_seconds)
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            task.cancel()

    async def close(self) -> None:
        """Waits for statements that nobody waits for."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        """Ignores the result of the task: the pool drops connections that it cannot take back."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

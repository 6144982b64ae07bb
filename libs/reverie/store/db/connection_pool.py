"""Lends connections of an asyncpg pool with little overhead and measures them for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeAlias

import asyncpg
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ObservedPool(Protocol):
    """A pool of connections: how many are lent, how many are free, and how many there may be."""

    @property
    def busy(self) -> int: ...
    @property
    def idle(self) -> int: ...
    @property
    def limit(self) -> int: ...


class PoolMetricSet(NamedTuple):
    """The metrics of one pool: seconds of waiting and of use, and the number of failures."""

    wait_seconds: Histogram
    use_seconds: Histogram
    failures: Counter


class PoolMetrics(Collector):
    """Of each pool, by name (main, readers): its connections now, and what they were used for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pools: dict[str, ObservedPool] = {}
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

    def observe(self, name: str, pool: ObservedPool) -> PoolMetricSet:
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

IDLE_SECONDS = 10.0
"""After so long what is free goes back to its pool, which closes what nobody needs."""


class ConnectionPool:
    """Lends the connections of a pool, and keeps returned ones for the next caller.

    All users of the pool must acquire here: the pool does not know about kept connections. A
    connection goes back to the pool if its use failed or if somebody waits for one.
    """

    def __init__(
        self, name: str, pool: asyncpg.Pool[asyncpg.Record], timeout: float, metrics: PoolMetrics
    ) -> None:
        """`timeout`: maximum seconds to wait for a connection, and to return it."""
        self._pool, self._timeout = pool, timeout
        self._free: list[Connection] = []
        self._waiting = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._metrics = metrics.observe(name, self)

    @property
    def busy(self) -> int:
        """Connections that are lent."""
        return self._pool.get_size() - self.idle

    @property
    def idle(self) -> int:
        """Connections that nobody uses."""
        return self._pool.get_idle_size() + len(self._free)

    @property
    def limit(self) -> int:
        """Connections that may be open."""
        return self._pool.get_max_size()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection. Raises `TimeoutError`, and what opening one raises."""
        connection, since = await self._acquire_timed()
        reusable = False
        try:
            yield connection
            reusable = True
        finally:
            await self._return(connection, reusable)
            self._metrics.use_seconds.observe(perf_counter() - since)

    async def fetch_row(self, sql: str, timeout_seconds: float) -> asyncpg.Record | None:
        """Returns the first row of a statement.

        Raises as `acquire`, and `TimeoutError` after `timeout_seconds`. Closing a connection to a
        server that stopped responding takes longer and continues in the background.
        """

        async def asked() -> asyncpg.Record | None:
            async with self.acquire() as connection:
                return await connection.fetchrow(sql)

        task = asyncio.create_task(asked())
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        try:
            await asyncio.wait({task}, timeout=timeout_seconds)
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            task.cancel()

    async def _acquire_timed(self) -> tuple[Connection, float]:
        """A connection, and since when it is lent."""
        started = perf_counter()
        try:
            connection = await self._acquire()
        except Exception:
            self._metrics.failures.inc()
            raise
        since = perf_counter()
        self._metrics.wait_seconds.observe(since - started)
        return connection, since

    async def _acquire(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if _is_reusable(connection):
                return connection
            await self._release(connection)
        self._waiting += 1
        try:
            # Its own timeout would take a task for each.
            async with asyncio.timeout(self._timeout):
                return await self._pool.acquire()  # type: ignore[return-value]
        finally:
            self._waiting -= 1

    async def _return(self, connection: Connection, reusable: bool) -> None:
        """Keeps what ended as it should, unless somebody waits for one."""
        if not reusable or self._waiting or self._closed or not _is_reusable(connection):
            await self._release(connection)
            return
        self._free.append(connection)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(IDLE_SECONDS, self._release_idle)

    async def close(self) -> None:
        """Returns all free connections to the pool, and from now on those that are released."""
        self._closed = True
        self._release_idle()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _release_idle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # The pool lends the most recently returned one: so the others stay idle until it closes
        # them.
        while self._free:
            task = asyncio.get_running_loop().create_task(self._release(self._free.pop(0)))
            self._tasks.add(task)
            task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        """Ignores the result of the task: the pool drops connections that it cannot take back."""
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _release(self, connection: Any) -> None:
        await self._pool.release(connection, timeout=self._timeout)


def _is_reusable(connection: Connection) -> bool:
    """Whether it is open and idle. A lost connection is already being replaced by the pool."""
    try:
        return not connection.is_closed() and not connection.is_in_transaction()
    except asyncpg.InterfaceError:
        return False

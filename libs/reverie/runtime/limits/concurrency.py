"""A limit on concurrent requests, with a bounded queue and a deadline for waiting."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.domain.core.errors import Overloaded

_MAX_RETRY_SECONDS = 2.0
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass(frozen=True)
class ConcurrencyLimits:
    """The maximum of running requests, of waiting requests, and of seconds to wait."""

    max_concurrent: int
    max_queued: int
    queue_timeout: float


class ConcurrencyMetrics:
    """Metrics of all limiters of a process. `target`: `self`, or the service behind a proxy."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.limit = Gauge(
            "reverie_requests_limit",
            "Limit of concurrent requests.",
            ["target"],
            registry=registry,
        )
        self.in_progress = Gauge(
            "reverie_requests_in_progress", "Running requests.", ["target"], registry=registry
        )
        self.queued = Gauge(
            "reverie_requests_queued",
            "Waiting requests.",
            ["target"],
            registry=registry,
        )
        self.rejected = Counter(
            "reverie_requests_rejected",
            "Requests rejected because too many others were running.",
            ["target"],
            registry=registry,
        )
        self.queue_seconds = Histogram(
            "reverie_requests_queue_seconds",
            "Seconds that a request waited for its slot.",
            ["target"],
            buckets=_WAIT_BUCKETS,
            registry=registry,
        )


class ConcurrencyLimiter:
    """Slots for the work of one target. Work that waits gets a slot in its order.

    `what`: the name of the work in errors.
    """

    def __init__(
        self,
        limits: ConcurrencyLimits,
        metrics: ConcurrencyMetrics | None = None,
        target: str = "self",
        what: str = "requests",
    ) -> None:
        self.limits, self._what = limits, what
        self.running = self.queued = 0
        self._semaphore = asyncio.Semaphore(limits.max_concurrent)
        metrics = metrics or ConcurrencyMetrics(None)
        self._rejected = metrics.rejected.labels(target)
        self._queue_seconds = metrics.queue_seconds.labels(target)
        metrics.limit.labels(target).set(limits.max_concurrent)
        metrics.in_progress.labels(target).set_function(lambda: self.running)
        metrics.queued.labels(target).set_function(lambda: self.queued)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Holds a slot. Raises `Overloaded` if the queue is full or the wait is too long."""
        await self._wait_for_slot()
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._semaphore.release()

    async def _wait_for_slot(self) -> None:
        if self._semaphore.locked() and self.queued >= self.limits.max_queued:
            raise self._reject()
        started = time.monotonic()
        self.queued += 1
        try:
            async with asyncio.timeout(self.limits.queue_timeout):
                await self._semaphore.acquire()
        except TimeoutError:
            raise self._reject() from None
        finally:
            self.queued -= 1
        self._queue_seconds.observe(time.monotonic() - started)

    def _reject(self) -> Overloaded:
        self._rejected.inc()
        # Clients that were rejected together come back at different times.
        retry_after = random.uniform(0.0, _MAX_RETRY_SECONDS)  # noqa: S311
        return Overloaded(self._what, self.running, self.queued, retry_after)

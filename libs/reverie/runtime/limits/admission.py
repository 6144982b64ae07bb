"""Admission control: an adaptive concurrency limit with a bounded queue."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reverie.domain.core.errors import Overloaded

log = structlog.get_logger()

INITIAL_LIMIT = 8
MIN_LIMIT = 2
"""At least so many at once: while one waits for the store another can be worked on.

But one by one where more come than can be done and even these slow each other down.
"""
_WINDOW = 0.25
_WINDOW_SAMPLES = 16
"""Seconds, and requests, after which the limit is looked at again."""
_SLOWDOWN_RATIO, _HEADROOM_RATIO = 1.25, 1.0
"""Times as long as alone: above the first there are too many, below the other room.

As nine of ten do alone; as half of them do while more come than can be done, for then a place is
taken again at once, and those of a noisy minute among the nine would let in too many.
"""
_SERIAL_RATIO = 0.5
"""One by one calls take longer than this, unless they wait for what is away and count as 0."""
_OUTAGE_RATIO = 16.0
"""Times as long as alone from which on it is not the others that a request waits for."""
_BASELINE_SAMPLES = 64
"""Calls alone that are remembered, of each kind."""
_MIN_WAIT = 0.005
_OVERLOAD_SECONDS = 2.5
"""Seconds for which nobody waits where a queue did not clear; then it is looked at again."""


@dataclass(frozen=True)
class AdmissionLimits:
    """`most` are worked on at once, `queue` wait for at most `patience` seconds.

    Where more than `room` have waited for `clears` seconds, whoever finds no place goes at once,
    and who waits already once that took half as long as a slow one takes.
    """

    most: int = 64
    queue: int = 256
    room: int = 16
    patience: float = 2.0
    clears: float = 0.25


@dataclass
class _QueuedRequest:
    since: float
    turn: asyncio.Future[None]


@dataclass
class _MeasurementWindow:
    """What was measured since the limit was last looked at."""

    since: float
    ratios: list[float] = field(default_factory=list)
    full: bool = False


class AdmissionMetrics:
    """What the metrics say of admission; `of`: this service, or the one that calls go on to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.limit = Gauge(
            "reverie_admission_limit",
            "Requests worked on at once at most.",
            ["of"],
            registry=registry,
        )
        self.working = Gauge(
            "reverie_admission_working", "Requests that are worked on.", ["of"], registry=registry
        )
        self.waiting = Gauge(
            "reverie_admission_waiting",
            "Requests that wait for their turn.",
            ["of"],
            registry=registry,
        )
        self.refused = Counter(
            "reverie_admission_refused", "Requests refused as too many.", ["of"], registry=registry
        )
        self.waited = Histogram(
            "reverie_admission_wait_seconds",
            "Seconds that requests let in had waited.",
            ["of"],
            buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
            registry=registry,
        )


class _BaselineLatency:
    """How long a call takes alone: the last of those that met nobody.

    A rank among them rather than a mean: one that hung for a second says nothing of the others.
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_BASELINE_SAMPLES)
        self.median = 0.01
        """What half of them take no longer than; seconds."""
        self.slow = 0.01
        """What nine of ten take no longer than; seconds.

        A tenth above the median at least: a call that takes the same each time alone does not do so
        beside others, however little they cost it.
        """

    def learn(self, seconds: float) -> None:
        """Takes one more in."""
        self._last.append(seconds)
        ranked = sorted(self._last)
        self.median = max(ranked[len(ranked) // 2], 0.0005)
        self.slow = max(ranked[(9 * len(ranked) - 1) // 10], 1.1 * self.median)

    @property
    def has_samples(self) -> bool:
        """Whether any was seen."""
        return bool(self._last)


class AdmissionController:
    """The door of one process, or that to another service behind it."""

    def __init__(self, bounds: AdmissionLimits, metrics: AdmissionMetrics, target: str) -> None:
        self._bounds, self._of = bounds, target
        self._refused, self._waited = metrics.refused.labels(target), metrics.waited.labels(target)
        self._limit = float(min(INITIAL_LIMIT, bounds.most))
        self._min_limit = float(min(MIN_LIMIT, bounds.most))
        self._working = 0
        self._entered = 0
        self._waiting: deque[_QueuedRequest] = deque()
        self._baselines: dict[str, _BaselineLatency] = {}
        self._overall_baseline = _BaselineLatency()
        self._cleared = self._now()
        self._window = _MeasurementWindow(self._cleared)
        self._overloaded_until = -1.0
        self._more_refused = 0
        self._unlogged, self._logged_at = 0, -1.0
        metrics.limit.labels(target).set_function(lambda: self._limit)
        metrics.working.labels(target).set_function(lambda: self._working)
        metrics.waiting.labels(target).set_function(lambda: len(self._waiting))

    def check(self) -> None:
        """Raises `Overloaded` where another could only wait in vain:

        before anything is read of it.
        """
        now = self._now()
        self._detect_overload(now)
        if self._working < int(self._limit):
            return
        self._window.full = True
        if self._is_overloaded(now):
            self._reject_late(now)
            raise self._overloaded_error()
        if len(self._waiting) >= self._bounds.queue:
            raise self._overloaded_error()

    @asynccontextmanager
    async def acquire_slot(self, call: str) -> AsyncIterator[None]:
        """A place among those that are worked on.

        Raises `Overloaded` where there is none in time.
        """
        await self._wait_for_slot()
        self._entered += 1
        self._more_refused -= 1
        place, beside, begun = self._entered, self._working, self._now()
        try:
            yield
        finally:
            self._working -= 1
            met = beside > 1 or place != self._entered
            self._measure(call, self._now() - begun, beside if met else 0)
            self._admit_waiting()

    async def _wait_for_slot(self) -> None:
        now = self._now()
        self._detect_overload(now)
        if self._working < int(self._limit) and not self._waiting:
            self._working += 1
            self._waited.observe(0.0)
            return
        self.check()
        waiting = _QueuedRequest(now, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(self._bounds.patience):
                await waiting.turn
        except TimeoutError:
            self._cancel_wait(waiting)
            raise self._overloaded_error() from None
        except asyncio.CancelledError:
            self._cancel_wait(waiting)
            raise
        self._waited.observe(self._now() - now)

    def _cancel_wait(self, waiting: _QueuedRequest) -> None:
        """Out of the queue; where its turn had come meanwhile, that goes to another."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        elif waiting.turn.done() and not waiting.turn.cancelled() and not waiting.turn.exception():
            self._working -= 1
            self._admit_waiting()

    def _admit_waiting(self) -> None:
        now = self._now()
        self._detect_overload(now)
        if self._is_overloaded(now):
            self._reject_late(now)
        while self._waiting and self._working < int(self._limit):
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                self._working += 1
                waiting.turn.set_result(None)
        self._detect_overload(now)

    def _detect_overload(self, now: float) -> None:
        """Notes whether more comes than can be done: too many have waited for too long.

        Some clients that each wait for their answer make a queue, but none that grows. Once one
        did, nobody waits, so another could not grow: then it is as long as more go than are let in.
        """
        if self._is_overloaded(now):
            return
        goes_on = self._more_refused > 0 and now - self._overloaded_until < _OVERLOAD_SECONDS
        if len(self._waiting) <= self._bounds.room and not goes_on:
            self._cleared = now
            self._limit = max(self._limit, self._min_limit)
        elif goes_on or now - self._cleared > self._bounds.clears:
            self._overloaded_until = now + _OVERLOAD_SECONDS
            self._more_refused = 0

    def _is_overloaded(self, now: float) -> bool:
        return now < self._overloaded_until

    def _reject_late(self, now: float) -> None:
        """Who has waited long goes: the answer would come too late."""
        since = now - max(self._overall_baseline.slow / 2, _MIN_WAIT)
        while self._waiting and self._waiting[0].since < since:
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                waiting.turn.set_exception(self._overloaded_error())

    def _measure(self, call: str, seconds: float, beside: int) -> None:
        """Learns from one that met nobody, else holds it against those; `beside`: whom it met."""
        usual = self._baselines.setdefault(call, _BaselineLatency())
        if not beside:
            self._overall_baseline.learn(min(seconds, 1.0))
        if not beside or not usual.has_samples:
            # One that was never seen alone is taken to have shared evenly.
            usual.learn(seconds / max(beside, 1))
        window, now = self._window, self._now()
        ratio = seconds / (usual.median if self._is_overloaded(now) else usual.slow)
        # Something is away: waiting for it costs nothing, and reads go on without it.
        window.ratios.append(0.0 if ratio > _OUTAGE_RATIO else ratio)
        if len(window.ratios) >= _WINDOW_SAMPLES and now - window.since > _WINDOW:
            # Most of them: what hung for a moment was held up by something else.
            self._adjust(median(window.ratios), window.full)
            self._window = _MeasurementWindow(now, full=bool(self._waiting))

    def _adjust(self, ratio: float, full: bool) -> None:
        """Fewer at once where they slow each other down, one more where there is room and need.

        While more come than can be done, one by one where `MIN_LIMIT` at once slow each other
        down: who takes turns at a processor is not done sooner, only later. Two again where most
        wait for something that is away, and so count for nothing.
        """
        strict = self._is_overloaded(self._now())
        if ratio > _SLOWDOWN_RATIO:
            self._limit = max(1.0 if strict else self._min_limit, self._limit * 0.75)
        elif full and ratio < (
            _HEADROOM_RATIO if self._limit >= self._min_limit else _SERIAL_RATIO
        ):
            self._limit = min(float(self._bounds.most), self._limit + 1.0)

    def _overloaded_error(self) -> Overloaded:
        self._refused.inc()
        self._more_refused += 1
        self._unlogged += 1
        if self._now() - self._logged_at > 1.0:
            log.warning(
                "requests_refused", of=self._of, count=self._unlogged, limit=int(self._limit)
            )
            self._unlogged, self._logged_at = 0, self._now()
        # Not all at once again: told in whole seconds, one for half of them.
        after = 2.0 * random.random()  # noqa: S311
        return Overloaded("requests", self._working, len(self._waiting), after)

    @staticmethod
    def _now() -> float:
        return time.monotonic()

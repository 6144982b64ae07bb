"""Who is let in when more comes than can be done: few are worked on at once, the rest wait or go.

How many are worked on at once follows from how long they take beside others, against how long the
same calls take alone (as in TCP Vegas and Netflix's concurrency limits): above what the machine
holds, more work at once makes nothing faster and all of it slower. A short wait evens out what
comes in bursts. Where the queue does not clear, more comes than can be done, and nobody waits any
more (the queue is told from a burst as in CoDel; see Maurer, "Fail at Scale", ACM Queue 13(8),
2015): the next comes soon enough for every place that falls free, and some are answered as quickly
as ever, rather than all too late. Whoever is refused costs next to nothing.
"""

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

from reverie.domain.errors import Crowded

log = structlog.get_logger()

START = 8
LEAST = 2
"""At least so many at once: while one waits for the store another can be worked on.

But one by one where more come than can be done and even these slow each other down.
"""
_WINDOW = 0.25
_TAKEN = 16
"""Seconds, and requests, after which the limit is looked at again."""
_SLOWED, _AT_EASE = 1.25, 1.0
"""Times as long as alone: above the first there are too many, below the other room.

As nine of ten do alone; as half of them do while more come than can be done, for then a place is
taken again at once, and those of a noisy minute among the nine would let in too many.
"""
_AWAY = 0.5
"""One by one calls take longer than this, unless they wait for what is away and count as 0."""
_OUTAGE = 16.0
"""Times as long as alone from which on it is not the others that a request waits for."""
_KEPT = 64
"""Calls alone that are remembered, of each kind."""
_LEAST_WAIT = 0.005
_STRICT = 2.5
"""Seconds for which nobody waits where a queue did not clear; then it is looked at again."""


@dataclass(frozen=True)
class Bounds:
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
class _Waiting:
    since: float
    turn: asyncio.Future[None]


@dataclass
class _Window:
    """What was measured since the limit was last looked at."""

    since: float
    ratios: list[float] = field(default_factory=list)
    full: bool = False


class AdmissionMeters:
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


class _Usual:
    """How long a call takes alone: the last of those that met nobody.

    A rank among them rather than a mean: one that hung for a second says nothing of the others.
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_KEPT)
        self.middle = 0.01
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
        self.middle = max(ranked[len(ranked) // 2], 0.0005)
        self.slow = max(ranked[(9 * len(ranked) - 1) // 10], 1.1 * self.middle)

    @property
    def known(self) -> bool:
        """Whether any was seen."""
        return bool(self._last)


class Admission:
    """The door of one process, or that to another service behind it."""

    def __init__(self, bounds: Bounds, meters: AdmissionMeters, of: str) -> None:
        self._bounds, self._of = bounds, of
        self._refused, self._waited = meters.refused.labels(of), meters.waited.labels(of)
        self._limit = float(min(START, bounds.most))
        self._least = float(min(LEAST, bounds.most))
        self._working = 0
        self._entered = 0
        self._waiting: deque[_Waiting] = deque()
        self._usual: dict[str, _Usual] = {}
        self._any = _Usual()
        self._cleared = self._now()
        self._window = _Window(self._cleared)
        self._strict_until = -1.0
        self._more_refused = 0
        self._untold, self._told = 0, -1.0
        meters.limit.labels(of).set_function(lambda: self._limit)
        meters.working.labels(of).set_function(lambda: self._working)
        meters.waiting.labels(of).set_function(lambda: len(self._waiting))

    def check(self) -> None:
        """Raises `Crowded` where another could only wait in vain: before anything is read of it."""
        now = self._now()
        self._look(now)
        if self._working < int(self._limit):
            return
        self._window.full = True
        if self._is_strict(now):
            self._refuse_late(now)
            raise self._crowded()
        if len(self._waiting) >= self._bounds.queue:
            raise self._crowded()

    @asynccontextmanager
    async def turn(self, call: str) -> AsyncIterator[None]:
        """A place among those that are worked on. Raises `Crowded` where there is none in time."""
        await self._enter()
        self._entered += 1
        self._more_refused -= 1
        place, beside, begun = self._entered, self._working, self._now()
        try:
            yield
        finally:
            self._working -= 1
            met = beside > 1 or place != self._entered
            self._measure(call, self._now() - begun, beside if met else 0)
            self._let_in()

    async def _enter(self) -> None:
        now = self._now()
        self._look(now)
        if self._working < int(self._limit) and not self._waiting:
            self._working += 1
            self._waited.observe(0.0)
            return
        self.check()
        waiting = _Waiting(now, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(self._bounds.patience):
                await waiting.turn
        except TimeoutError:
            self._leave(waiting)
            raise self._crowded() from None
        except asyncio.CancelledError:
            self._leave(waiting)
            raise
        self._waited.observe(self._now() - now)

    def _leave(self, waiting: _Waiting) -> None:
        """Out of the queue; where its turn had come meanwhile, that goes to another."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)
        elif waiting.turn.done() and not waiting.turn.cancelled() and not waiting.turn.exception():
            self._working -= 1
            self._let_in()

    def _let_in(self) -> None:
        now = self._now()
        self._look(now)
        if self._is_strict(now):
            self._refuse_late(now)
        while self._waiting and self._working < int(self._limit):
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                self._working += 1
                waiting.turn.set_result(None)
        self._look(now)

    def _look(self, now: float) -> None:
        """Notes whether more comes than can be done: too many have waited for too long.

        Some clients that each wait for their answer make a queue, but none that grows. Once one
        did, nobody waits, so another could not grow: then it is as long as more go than are let in.
        """
        if self._is_strict(now):
            return
        goes_on = self._more_refused > 0 and now - self._strict_until < _STRICT
        if len(self._waiting) <= self._bounds.room and not goes_on:
            self._cleared = now
            self._limit = max(self._limit, self._least)
        elif goes_on or now - self._cleared > self._bounds.clears:
            self._strict_until = now + _STRICT
            self._more_refused = 0

    def _is_strict(self, now: float) -> bool:
        return now < self._strict_until

    def _refuse_late(self, now: float) -> None:
        """Who has waited long goes: the answer would come too late."""
        since = now - max(self._any.slow / 2, _LEAST_WAIT)
        while self._waiting and self._waiting[0].since < since:
            waiting = self._waiting.popleft()
            if not waiting.turn.done():
                waiting.turn.set_exception(self._crowded())

    def _measure(self, call: str, seconds: float, beside: int) -> None:
        """Learns from one that met nobody, else holds it against those; `beside`: whom it met."""
        usual = self._usual.setdefault(call, _Usual())
        if not beside:
            self._any.learn(min(seconds, 1.0))
        if not beside or not usual.known:
            # One that was never seen alone is taken to have shared evenly.
            usual.learn(seconds / max(beside, 1))
        window, now = self._window, self._now()
        ratio = seconds / (usual.middle if self._is_strict(now) else usual.slow)
        # Something is away: waiting for it costs nothing, and reads go on without it.
        window.ratios.append(0.0 if ratio > _OUTAGE else ratio)
        if len(window.ratios) >= _TAKEN and now - window.since > _WINDOW:
            # Most of them: what hung for a moment was held up by something else.
            self._adjust(median(window.ratios), window.full)
            self._window = _Window(now, full=bool(self._waiting))

    def _adjust(self, ratio: float, full: bool) -> None:
        """Fewer at once where they slow each other down, one more where there is room and need.

        While more come than can be done, one by one where `LEAST` at once slow each other down: who
        takes turns at a processor is not done sooner, only later. Two again where most wait for
        something that is away, and so count for nothing.
        """
        strict = self._is_strict(self._now())
        if ratio > _SLOWED:
            self._limit = max(1.0 if strict else self._least, self._limit * 0.75)
        elif full and ratio < (_AT_EASE if self._limit >= self._least else _AWAY):
            self._limit = min(float(self._bounds.most), self._limit + 1.0)

    def _crowded(self) -> Crowded:
        self._refused.inc()
        self._more_refused += 1
        self._untold += 1
        if self._now() - self._told > 1.0:
            log.warning("requests_refused", of=self._of, count=self._untold, limit=int(self._limit))
            self._untold, self._told = 0, self._now()
        # Not all at once again: told in whole seconds, one for half of them.
        after = 2.0 * random.random()  # noqa: S311
        return Crowded("requests", self._working, len(self._waiting), after)

    @staticmethod
    def _now() -> float:
        return time.monotonic()

"""A circuit breaker: what failed again and again is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Breaker:
    """Opens after `limit` failures in a row, for `seconds`; then one call tries again."""

    def __init__(
        self, limit: int = 5, seconds: float = 60.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._limit, self._seconds, self._clock = limit, seconds, clock
        self._failures = 0
        self._until = 0.0

    def rests(self) -> bool:
        """Whether a call is to be spared. After the rest the first that asks may try."""
        if self._failures < self._limit:
            return False
        if self._clock() < self._until:
            return True
        self._until = self._clock() + self._seconds
        return False

    def worked(self) -> None:
        """A call was answered."""
        self._failures = 0

    def failed(self) -> None:
        """A call was not answered."""
        self._failures += 1
        if self._failures >= self._limit:
            self._until = self._clock() + self._seconds

"""How many requests a key may send: a bucket that fills again by the second."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from reverie.domain.errors import TooMany

_KEPT = 10_000
MINUTE = 60.0


@dataclass(frozen=True)
class Left:
    """What a key has left: requests now, and the seconds until its bucket is full again."""

    limit: int
    requests: int
    seconds: int

    def headers(self) -> dict[str, str]:
        """The fields of the IETF draft "RateLimit header fields for HTTP"."""
        return {
            "RateLimit-Policy": f'"key";q={self.limit};w={MINUTE:.0f}',
            "RateLimit": f'"key";r={self.requests};t={self.seconds}',
        }


class Rates:
    """The buckets of one process. `limit`: requests a minute, which may come all at once."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._now = now
        self._used: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def take(self, key: object) -> tuple[Left, TooMany | None]:
        """One request of `key`: what is left after it, and the refusal where nothing was."""
        now, each = self._now(), MINUTE / self._limit
        used, at = self._used.pop(key, (0.0, now))
        used = max(0.0, used - (now - at) / each)
        refused = used + 1 > self._limit
        wait = (used + 1 - self._limit) * each
        used += 0 if refused else 1
        self._used[key] = (used, now)
        if len(self._used) > _KEPT:
            self._used.popitem(last=False)
        left = Left(self._limit, int(self._limit - used), math.ceil(used * each))
        return left, TooMany(self._limit, round(wait, 3)) if refused else None

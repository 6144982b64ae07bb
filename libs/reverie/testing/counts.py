"""What keys and tenants use of their limits, in memory: the twin of the counts in the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from reverie.domain.errors import Unavailable
from reverie.store.meters import Taken

_DAY = 86_400.0


class MemoryCounts:
    """Shared counts of whatever asks this object; `down` makes it fail as a store does.

    `asked`: how often it was asked. `now`: seconds since some midnight.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._used: dict[tuple[int, UUID, str], tuple[float, float]] = {}
        self.down = False
        self.asked = 0

    async def take(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, more: float
    ) -> Taken:
        """As `Allowances.take`."""
        self.asked += 1
        if self.down:
            raise Unavailable("the database", "is it running?")
        now, minute = self._now(), name.endswith("_a_minute")
        used, at = self._used.get((tenant, holder, name), (0.0, now))
        if minute:
            used = max(0.0, used - (now - at) * limit / 60)
        elif now // _DAY != at // _DAY:
            used = 0.0
        granted = 0.0 if used + amount > limit else min(amount + more, limit - used)
        over = used + (granted or amount - limit)
        wait = over * 60 / limit if minute else _DAY - now % _DAY
        self._used[tenant, holder, name] = (used + granted, now)
        return Taken(granted, limit - used - granted, wait)

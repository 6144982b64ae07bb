"""Tells a burst of single writes, which goes with bulk so that other tenants need not wait for it.

All single memories share one queue. A tenant may have as much text in it as the models read in a
second or two, and then as much a second as they read beside a backlog.
"""

from __future__ import annotations

import time

from cachetools import LRUCache

BURST_BYTES = 20_000
"""Text of one tenant that may wait; more goes with bulk."""

CONFLICT_SEARCH_BYTES = 5_000
"""Text that may wait while conflicts are searched for: no user can be asked any faster."""

BYTES_PER_SECOND = 10_000.0
_MAX_TENANTS = 10_000


class WriteBursts:
    """What each tenant has written one by one lately, in this process."""

    def __init__(self) -> None:
        self._written: LRUCache[int, tuple[float, float]] = LRUCache(_MAX_TENANTS)

    def count_waiting_bytes(self, tenant: int) -> float:
        """The bytes that a tenant has written lately and that wait for the models."""
        waiting, counted_at = self._written.get(tenant, (0.0, 0.0))
        return max(waiting - (time.monotonic() - counted_at) * BYTES_PER_SECOND, 0.0)

    def is_burst(self, tenant: int, text: str) -> bool:
        """Whether a single write of a tenant exceeds its share; if not, it is counted."""
        waiting = self.count_waiting_bytes(tenant)
        if waiting >= BURST_BYTES:
            return True
        self._written[tenant] = (waiting + len(text.encode()), time.monotonic())
        return False

"""Detects a burst of single writes of one tenant; its events then go to the bulk consumer.

The single writes of all tenants share one consumer, so a burst would make other tenants wait. A
tenant may have as much text there as the models embed in two seconds (`BURST_BYTES`). After that it
may add as much in a second as they embed beside a backlog (`BYTES_PER_SECOND`).
"""

from __future__ import annotations

import time

from cachetools import LRUCache

BURST_BYTES = 20_000
"""The text of a tenant that may wait with single writes; more goes to the bulk consumer."""

CONFLICT_SEARCH_BYTES = 5_000
"""With this much text waiting, a write is not searched for conflicts. Nobody writes so fast by
hand, so nobody could be asked about them."""

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

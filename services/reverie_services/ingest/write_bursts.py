"""Tells a burst of single writes, which goes with bulk so that other tenants need not wait for it.

All single memories share one queue. A tenant may have as much text in it as the models read in a
second or two, and then as much a second as they read beside a backlog.
"""

from __future__ import annotations

import time

from cachetools import LRUCache

BURST_BYTES = 20_000
BYTES_PER_SECOND = 10_000.0
_MAX_TENANTS = 10_000


class WriteBursts:
    """What each tenant has written one by one lately, in this process."""

    def __init__(self) -> None:
        self._written: LRUCache[int, tuple[float, float]] = LRUCache(_MAX_TENANTS)

    def is_burst(self, tenant: int, text: str) -> bool:
        """Whether a single write of a tenant exceeds its share; if not, it is counted."""
        now = time.monotonic()
        level, counted_at = self._written.get(tenant, (0.0, now))
        level = max(level - (now - counted_at) * BYTES_PER_SECOND, 0.0)
        if level >= BURST_BYTES:
            return True
        self._written[tenant] = (level + len(text.encode()), now)
        return False

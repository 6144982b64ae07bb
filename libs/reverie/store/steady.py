"""Which tenants ask so much that what their answers come from is worth keeping in memory."""

from __future__ import annotations

from collections import OrderedDict

TENANTS = 1_000
"""Tenants that are counted, those that asked last."""
ASKED = 24
"""Visits to the store after which a tenant asks a lot; a recall takes eight to ten."""


class Steady:
    """Counts how often each of the tenants asked that asked last."""

    def __init__(self) -> None:
        self._asked: OrderedDict[int, int] = OrderedDict()

    def asks(self, tenant: int) -> None:
        """Notes that a tenant asks."""
        self._asked[tenant] = self._asked.pop(tenant, 0) + 1
        if len(self._asked) > TENANTS:
            self._asked.popitem(last=False)

    def is_one(self, tenant: int) -> bool:
        """Whether a tenant has asked enough."""
        return self._asked.get(tenant, 0) > ASKED

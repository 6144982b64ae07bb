"""Which tenants ask so much that plans of their own are worth keeping."""

from __future__ import annotations

from collections import OrderedDict

PLANS_KEPT_SECONDS = 60
"""A plan is made anew then: what was planned for a small table must not stay when it has grown."""
TENANTS = 8
"""Tenants with plans of their own: a connection keeps a hundred statements, a recall takes ten."""
ASKED = 24
"""How often a tenant asks, while it is among the last `TENANTS`, before its plans are kept."""


class Steady:
    """Counts how often each of the tenants asked that asked last."""

    def __init__(self) -> None:
        self._asked: OrderedDict[int, int] = OrderedDict()

    def asks(self, tenant: int) -> bool:
        """Notes that a tenant asks; answers whether it has asked enough."""
        count = self._asked.pop(tenant, 0) + 1
        self._asked[tenant] = count
        if len(self._asked) > TENANTS:
            self._asked.popitem(last=False)
        return self.is_one(tenant)

    def is_one(self, tenant: int) -> bool:
        """Whether a tenant has asked enough."""
        return self._asked.get(tenant, 0) > ASKED

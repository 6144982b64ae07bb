"""In-memory API keys, rate limit counters and idempotency keys for tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from reverie.domain.access.principals import KeyRole, Principal, hash_key
from reverie.domain.core.consistency import IdempotencyClaim, StoredReply
from reverie.domain.core.errors import Unavailable
from reverie.store.platform.quotas import QuotaGrant


class InMemoryKeys:
    """A `KeyFinder` over keys that a test hands out; `down` makes it fail as a store does."""

    def __init__(self) -> None:
        self._principals: dict[bytes, Principal] = {}
        self.down = False
        self.lookups = 0

    def add(self, key: str, principal: Principal) -> None:
        """Makes a key known."""
        self._principals[hash_key(key)] = principal

    def revoke(self, key: str) -> None:
        """Makes a key unknown again."""
        self._principals.pop(hash_key(key), None)

    async def find(self, key_hash: bytes) -> Principal | None:
        self.lookups += 1
        if self.down:
            raise Unavailable("the database", "is it running?")
        return self._principals.get(key_hash)


def build_principal(
    tenant: int = 1, role: KeyRole = KeyRole.WRITER, scopes: tuple[str, ...] = ("*",)
) -> Principal:
    """A holder that reads and writes `scopes`."""
    return Principal(tenant, f"tenant-{tenant}", f"key-{tenant}-{role}", role, scopes, scopes)


_DAY_SECONDS = 86_400.0


class InMemoryCounts:
    """Shared counts of whatever asks this object; `down` makes it fail as a store does.

    `calls`: how often it was asked. `now`: seconds since some midnight.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._used: dict[tuple[int, UUID, str], tuple[float, float]] = {}
        self.down = False
        self.calls = 0

    async def spend(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, more: float
    ) -> QuotaGrant:
        """Implements `SharedQuotas.spend`."""
        self.calls += 1
        if self.down:
            raise Unavailable("the database", "is it running?")
        now, per_minute = self._now(), name.endswith("_per_minute")
        used, at = self._used.get((tenant, holder, name), (0.0, now))
        if per_minute:
            used = max(0.0, used - (now - at) * limit / 60)
        elif now // _DAY_SECONDS != at // _DAY_SECONDS:
            used = 0.0
        granted = 0.0 if used + amount > limit else min(amount + more, limit - used)
        over = used + (granted or amount - limit)
        wait = over * 60 / limit if per_minute else _DAY_SECONDS - now % _DAY_SECONDS
        self._used[tenant, holder, name] = (used + granted, now)
        return QuotaGrant(granted, limit - used - granted, wait)


class InMemoryIdempotency:
    """An `IdempotencyStore` for one process; nothing expires."""

    def __init__(self) -> None:
        self._requests: dict[tuple[int, str], tuple[str, bytes]] = {}
        self._replies: dict[tuple[int, str], StoredReply] = {}

    async def begin(
        self, tenant: int, key: str, route: str, body_hash: bytes | None
    ) -> StoredReply | IdempotencyClaim:
        existing = self._requests.get((tenant, key))
        if existing is None:
            self._requests[tenant, key] = (route, body_hash or b"")
            return IdempotencyClaim.ACQUIRED
        if existing[0] != route or body_hash not in (None, existing[1]):
            return IdempotencyClaim.KEY_REUSED
        return self._replies.get((tenant, key), IdempotencyClaim.IN_PROGRESS)

    async def finish(self, tenant: int, key: str, reply: StoredReply) -> None:
        route, known_hash = self._requests[tenant, key]
        body_hash = reply.request_hash or known_hash
        self._requests[tenant, key] = (route, body_hash)
        self._replies[tenant, key] = replace(reply, request_hash=body_hash)

    async def renew(self, tenant: int, key: str) -> None:
        """Nothing expires."""

    async def abandon(self, tenant: int, key: str) -> None:
        if (tenant, key) not in self._replies:
            self._requests.pop((tenant, key), None)

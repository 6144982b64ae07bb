"""Rate limits and daily quotas of keys and tenants, counted across all replicas."""

from __future__ import annotations

import math
import time
from asyncio import Lock
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import structlog
from cachetools import LRUCache

from reverie.domain.access.principals import (
    BYTES_PER_DAY,
    MEMORIES_PER_DAY,
    REQUESTS_PER_DAY,
    REQUESTS_PER_MINUTE,
    TENANT_QUOTA_HOLDER,
    Principal,
    UsageLimits,
    combine_limits,
    quota_holder_of,
)
from reverie.domain.core.errors import QuotaExceeded, Unavailable

log = structlog.get_logger()

_MAX_PORTIONS = 20_000
_MINUTE, _DAY = 60.0, 86_400.0
_MAX_PORTION_SHARE = {_MINUTE: 0.1, _DAY: 0.01}
"""The largest portion, as a share of the limit, by the seconds that the limit is for."""
_PORTION_TTL = 6.0
"""Seconds after which the rest of a portion expires."""


class GrantedQuota(Protocol):
    """The granted amount, the amount that remains for all processes, and the seconds to wait."""

    @property
    def granted(self) -> float: ...
    @property
    def remains(self) -> float: ...
    @property
    def wait(self) -> float: ...


class SharedQuotas(Protocol):
    """The counts that all replicas share. Raises `Unavailable`."""

    async def spend(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, more: float
    ) -> GrantedQuota: ...


@dataclass(frozen=True)
class RemainingQuota:
    """The remaining requests of a key in this minute, and the seconds until all are back."""

    limit: int
    requests: int
    seconds: int

    @classmethod
    def exhausted(cls, error: QuotaExceeded) -> RemainingQuota:
        """Nothing, after a refusal."""
        return cls(error.limit, 0, math.ceil(error.retry_after))

    def headers(self) -> dict[str, str]:
        """The fields of the IETF draft "RateLimit header fields for HTTP"."""
        return {
            "RateLimit-Policy": f'"key";q={self.limit};w={_MINUTE:.0f}',
            "RateLimit": f'"key";r={self.requests};t={self.seconds}',
        }


@dataclass
class _Portion:
    """The share of one limit that this process has reserved."""

    amount: float = 0.0
    remains: float = 0.0
    wait: float = 0.0
    size: float = 0.0
    fetched_at: float = -math.inf
    lock: Lock = field(default_factory=Lock)


class RateLimiter:
    """Limits the requests of all keys.

    `keys` and `tenants`: the limits of the settings, used if a key or tenant has no stricter one.
    """

    def __init__(
        self,
        counts: SharedQuotas,
        keys: UsageLimits,
        tenants: UsageLimits,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counts, self._keys, self._tenants, self._now = counts, keys, tenants, now
        self._portions: LRUCache[tuple[int, UUID, str], _Portion] = LRUCache(_MAX_PORTIONS)

    async def count_request(self, principal: Principal) -> RemainingQuota | None:
        """Counts one request; returns the rest of this minute's limit, if there is a limit.

        Raises `QuotaExceeded`.
        """
        remaining = await self._count(principal, REQUESTS_PER_MINUTE, 1)
        await self._count(principal, REQUESTS_PER_DAY, 1)
        return remaining

    async def count_bytes(self, principal: Principal, size: int) -> None:
        """Counts bytes of a body. Raises `QuotaExceeded`."""
        await self._count(principal, BYTES_PER_DAY, size)

    async def count_memories(self, principal: Principal, count: int) -> None:
        """Counts memories to be made. Raises `QuotaExceeded`."""
        await self._count(principal, MEMORIES_PER_DAY, count)

    async def _count(self, principal: Principal, name: str, amount: int) -> RemainingQuota | None:
        remaining = None
        key_limit = combine_limits(self._keys, principal.limits).get(name)
        if key_limit is not None and amount:
            holder = quota_holder_of(principal.key_id)
            remaining = await self._spend_from(
                principal.tenant, holder, name, key_limit, amount, "key"
            )
        tenant_limit = combine_limits(self._tenants, principal.tenant_limits).get(name)
        if tenant_limit is not None and amount:
            await self._spend_from(
                principal.tenant, TENANT_QUOTA_HOLDER, name, tenant_limit, amount, "tenant"
            )
        return remaining

    async def _spend_from(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, owner: str
    ) -> RemainingQuota:
        portion = self._portions.setdefault((tenant, holder, name), _Portion())
        if not self._has_enough(portion, amount):
            async with portion.lock:
                if not self._has_enough(portion, amount):
                    await self._fetch(portion, (tenant, holder, name), limit, amount)
        if portion.amount < amount:
            what = name.replace("_a_", " a ").replace("_", " ")
            raise QuotaExceeded(owner, what, limit, math.ceil(portion.wait))
        portion.amount -= amount
        return RemainingQuota(limit, int(portion.amount + portion.remains), math.ceil(portion.wait))

    def _has_enough(self, portion: _Portion, amount: float) -> bool:
        return portion.amount >= amount and self._now() - portion.fetched_at < _PORTION_TTL

    async def _fetch(
        self, portion: _Portion, portion_key: tuple[int, UUID, str], limit: int, amount: float
    ) -> None:
        """Fetches another portion, and adds the rest of the last one unless that has expired."""
        tenant, holder, name = portion_key
        now = self._now()
        window = _MINUTE if name.endswith("_per_minute") else _DAY
        used_up_quickly = now - portion.fetched_at < 1.0
        portion.size = (
            min(max(portion.size * 2, amount), limit * _MAX_PORTION_SHARE[window])
            if used_up_quickly
            else 0.0
        )
        leftover = portion.amount if now - portion.fetched_at < _PORTION_TTL else 0.0
        needed = max(0.0, amount - leftover)
        try:
            extra = max(0.0, portion.size - needed)
            grant = await self._counts.spend(tenant, holder, name, limit, needed, extra)
        except Unavailable:
            # The limit protects the store: if that is unavailable, there is nothing to protect.
            log.warning("quota_check_failed", limit=name)
            portion.amount, portion.fetched_at = max(leftover, amount), now
            return
        portion.amount = leftover + grant.granted
        portion.remains, portion.wait, portion.fetched_at = grant.remains, grant.wait, now

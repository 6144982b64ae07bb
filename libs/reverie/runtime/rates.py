"""How much keys and tenants may do: counted for all replicas, in portions taken ahead.

A process takes a portion of a limit from the shared count and gives it out by itself, so that a
busy key costs no question a request: portions double while they are used up within a second. A key
that asks seldom gets what it asked for and no more, so that replicas keep little from one another.
"""

from __future__ import annotations

import math
import time
from asyncio import Lock
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import structlog

from reverie.domain.access import Principal
from reverie.domain.errors import TooMany, Unavailable
from reverie.domain.limits import (
    BYTES_A_DAY,
    MEMORIES_A_DAY,
    REQUESTS_A_DAY,
    REQUESTS_A_MINUTE,
    TENANT_WIDE,
    Limits,
    holder_of,
    least,
)

log = structlog.get_logger()

_KEPT = 20_000
_MINUTE, _DAY = 60.0, 86_400.0
_LARGEST = {_MINUTE: 0.1, _DAY: 0.01}
"""The largest portion, as a share of the limit, by the seconds that the limit is for."""
_LASTS = 6.0
"""Seconds after which what is left of a portion is given up."""


class Grant(Protocol):
    """What was granted, what remains for all, and seconds to wait."""

    @property
    def granted(self) -> float: ...
    @property
    def remains(self) -> float: ...
    @property
    def wait(self) -> float: ...


class SharedCounts(Protocol):
    """The counts that all replicas share. Raises `Unavailable`."""

    async def take(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, more: float
    ) -> Grant: ...


@dataclass(frozen=True)
class Left:
    """What a key has left of its requests a minute, and the seconds until it has all again."""

    limit: int
    requests: int
    seconds: int

    @classmethod
    def after(cls, refused: TooMany) -> Left:
        """Nothing, after a refusal."""
        return cls(refused.limit, 0, math.ceil(refused.retry_after))

    def headers(self) -> dict[str, str]:
        """The fields of the IETF draft "RateLimit header fields for HTTP"."""
        return {
            "RateLimit-Policy": f'"key";q={self.limit};w={_MINUTE:.0f}',
            "RateLimit": f'"key";r={self.requests};t={self.seconds}',
        }


@dataclass
class _Portion:
    """What a process holds of one limit."""

    amount: float = 0.0
    remains: float = 0.0
    wait: float = 0.0
    size: float = 0.0
    at: float = -math.inf
    lock: Lock = field(default_factory=Lock)


class Rates:
    """The limits of all keys. `keys` and `tenants` are those of the settings, where a key or a
    tenant has none that is stricter."""

    def __init__(
        self,
        counts: SharedCounts,
        keys: Limits,
        tenants: Limits,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counts, self._keys, self._tenants, self._now = counts, keys, tenants, now
        self._portions: OrderedDict[tuple[int, UUID, str], _Portion] = OrderedDict()

    async def request(self, who: Principal) -> Left | None:
        """Counts one request; what is left of those of this minute, where they are limited.

        Raises `TooMany`.
        """
        left = await self._take(who, REQUESTS_A_MINUTE, 1)
        await self._take(who, REQUESTS_A_DAY, 1)
        return left

    async def sent(self, who: Principal, size: int) -> None:
        """Counts bytes of a body. Raises `TooMany`."""
        await self._take(who, BYTES_A_DAY, size)

    async def memories(self, who: Principal, count: int) -> None:
        """Counts memories to be made. Raises `TooMany`."""
        await self._take(who, MEMORIES_A_DAY, count)

    async def _take(self, who: Principal, name: str, amount: int) -> Left | None:
        left = None
        of_key = least(self._keys, who.limits).of(name)
        if of_key is not None and amount:
            holder = holder_of(who.key_id)
            left = await self._from(who.tenant, holder, name, of_key, amount, "key")
        of_all = least(self._tenants, who.tenant_limits).of(name)
        if of_all is not None and amount:
            await self._from(who.tenant, TENANT_WIDE, name, of_all, amount, "tenant")
        return left

    async def _from(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, whose: str
    ) -> Left:
        portion = self._portion((tenant, holder, name))
        if not self._holds(portion, amount):
            async with portion.lock:
                if not self._holds(portion, amount):
                    await self._fetch(portion, (tenant, holder, name), limit, amount)
        if portion.amount < amount:
            what = name.replace("_a_", " a ").replace("_", " ")
            raise TooMany(whose, what, limit, math.ceil(portion.wait))
        portion.amount -= amount
        return Left(limit, int(portion.amount + portion.remains), math.ceil(portion.wait))

    def _portion(self, place: tuple[int, UUID, str]) -> _Portion:
        portion = self._portions.pop(place, None) or _Portion()
        self._portions[place] = portion
        if len(self._portions) > _KEPT:
            self._portions.popitem(last=False)
        return portion

    def _holds(self, portion: _Portion, amount: float) -> bool:
        return portion.amount >= amount and self._now() - portion.at < _LASTS

    async def _fetch(
        self, portion: _Portion, place: tuple[int, UUID, str], limit: int, amount: float
    ) -> None:
        """Another portion, added to what is left of the last, unless that is too old."""
        tenant, holder, name = place
        now = self._now()
        span = _MINUTE if name.endswith("_a_minute") else _DAY
        soon = now - portion.at < 1.0
        portion.size = min(max(portion.size * 2, amount), limit * _LARGEST[span]) if soon else 0.0
        kept = portion.amount if now - portion.at < _LASTS else 0.0
        wanted = max(0.0, amount - kept)
        try:
            more = max(0.0, portion.size - wanted)
            found = await self._counts.take(tenant, holder, name, limit, wanted, more)
        except Unavailable:
            # The limit protects the store: where that is away, there is nothing to protect.
            log.warning("limits_uncounted", limit=name)
            portion.amount, portion.at = max(kept, amount), now
            return
        portion.amount = kept + found.granted
        portion.remains, portion.wait, portion.at = found.remains, found.wait, now

"""What keys and tenants use of their limits, counted for all replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.limits import TENANT_WIDE, Limits, least
from reverie.store.database import Database


@dataclass(frozen=True)
class Taken:
    """What was granted of a limit, what remains, and seconds to wait (see `meter_take`)."""

    granted: float
    remains: float
    wait: float


class Allowances:
    """The counters of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, more: float
    ) -> Taken:
        """Takes `amount` of a limit and up to `more`; grants nothing where `amount` is not left."""
        asked = (tenant, holder, name, float(limit), float(amount), float(more))
        [row] = await self._db.rows("meter_take", *asked)
        return Taken(**row)

    async def add(self, tenant: int, holder: UUID, name: str, amount: int) -> None:
        """Counts what was used of a day's limit, also beyond it."""
        async with self._db.tenant(tenant, flushed=False) as t:
            await t.rows("meter_add", holder, name, float(amount))

    async def used(self, tenant: int, holders: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
        """What each holder used today, and in this minute, by limit."""
        now = datetime.now(UTC)
        found: dict[UUID, dict[str, int]] = {holder: {} for holder in holders}
        async with self._db.tenant(tenant) as t:
            for row in await t.rows("meters_used", list(holders)):
                if _stands(row["name"], row["at"], now):
                    found[row["holder"]][row["name"]] = round(row["used"])
        return found

    async def of_tenant(self, tenant: int) -> tuple[Limits, Mapping[str, int], dict[str, int]]:
        """The limits of a tenant that are in force, those it has set itself, and what is used."""
        async with self._db.tenant(tenant) as t:
            row = await t.row("tenant_limits")
        given, own = (row["limits"], row["own"] or {}) if row else ({}, {})
        used = await self.used(tenant, [TENANT_WIDE])
        return least(given, own), own, used[TENANT_WIDE]

    async def limit_tenant(self, tenant: int, asked: Mapping[str, int] | None) -> None:
        """Sets some of what a tenant limits itself to; None takes all back."""
        async with self._db.tenant(tenant) as t:
            await t.rows("settings_lock")
            if asked is None:
                await t.rows("tenant_limits_reset")
                return
            row = await t.row("tenant_limits")
            kept = (row["own"] or {}) if row else {}
            await t.rows("tenant_limits_put", {**kept, **asked})


def _stands(name: str, at: datetime, now: datetime) -> bool:
    """Whether what was counted then has not run out by now."""
    if name.endswith("_a_minute"):
        return now - at < timedelta(minutes=1)
    return at.astimezone(UTC).date() == now.date()

"""Counts the use of rate limits and daily quotas by keys and tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.access.principals import TENANT_QUOTA_HOLDER, UsageLimits, combine_limits
from reverie.store.db.database import Database


@dataclass(frozen=True)
class QuotaGrant:
    """What was granted of a limit, what remains, and seconds to wait (see `meter_take`)."""

    granted: float
    remains: float
    wait: float


class QuotaStore:
    """The counters of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, extra: float
    ) -> QuotaGrant:
        """Takes `amount` of a limit and up to `extra`;

        grants nothing where `amount` is not left.
        """
        args = (tenant, holder, name, float(limit), float(amount), float(extra))
        [row] = await self._db.fetch_rows("quota_take", *args)
        return QuotaGrant(**row)

    async def add(self, tenant: int, holder: UUID, name: str, amount: int) -> None:
        """Counts what was used of a day's limit, also beyond it."""
        async with self._db.tenant_transaction(tenant, durable=False) as connection:
            await connection.fetch_rows("quota_add", holder, name, float(amount))

    async def load_usage(self, tenant: int, holders: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
        """What each holder used today, and in this minute, by limit."""
        now = datetime.now(UTC)
        found: dict[UUID, dict[str, int]] = {holder: {} for holder in holders}
        async with self._db.tenant_transaction(tenant) as connection:
            for row in await connection.fetch_rows("quota_usage", list(holders)):
                if _is_current(row["name"], row["at"], now):
                    found[row["holder"]][row["name"]] = round(row["used"])
        return found

    async def load_tenant_limits(
        self, tenant: int
    ) -> tuple[UsageLimits, Mapping[str, int], dict[str, int]]:
        """The limits of a tenant that are in force, those it has set itself, and what is used."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("tenant_limits")
        operator_limits, own_limits = (row["limits"], row["own"] or {}) if row else ({}, {})
        used = await self.load_usage(tenant, [TENANT_QUOTA_HOLDER])
        return combine_limits(operator_limits, own_limits), own_limits, used[TENANT_QUOTA_HOLDER]

    async def update_tenant_limits(self, tenant: int, changes: Mapping[str, int] | None) -> None:
        """Sets some of what a tenant limits itself to; None takes all back."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("settings_lock")
            if changes is None:
                await connection.fetch_rows("tenant_limits_reset")
                return
            row = await connection.fetch_row("tenant_limits")
            own_limits = (row["own"] or {}) if row else {}
            await connection.fetch_rows("tenant_limits_put", {**own_limits, **changes})


def _is_current(name: str, at: datetime, now: datetime) -> bool:
    """Whether what was counted then has not run out by now."""
    if name.endswith("_a_minute"):
        return now - at < timedelta(minutes=1)
    return at.astimezone(UTC).date() == now.date()

"""Counts the use of rate limits, daily quotas and language models by keys and tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from reverie.domain.access.principals import (
    LLM_TOKENS_PER_DAY,
    MEMORIES,
    TENANT_QUOTA_HOLDER,
    Principal,
    UsageLimits,
    combine_limits,
    quota_holder_of,
)
from reverie.store.db.database import Database, update_setting


@dataclass(frozen=True)
class QuotaGrant:
    """The granted part of a limit, the rest, and seconds to wait (see `quota_take`)."""

    granted: float
    remains: float
    wait: float


class QuotaStore:
    """The counters of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def spend(
        self, tenant: int, holder: UUID, name: str, limit: int, amount: float, extra: float
    ) -> QuotaGrant:
        """Takes `amount` of a limit and up to `extra`.

        Grants nothing if less than `amount` is left.
        """
        args = (tenant, holder, name, float(limit), float(amount), float(extra))
        [row] = await self._db.fetch_rows("quota_take", *args)
        return QuotaGrant(**row)

    async def add(self, tenant: int, holder: UUID, name: str, amount: int) -> None:
        """Counts what was used of a day's limit, also beyond it."""
        async with self._db.tenant_transaction(tenant, durable=False) as connection:
            await connection.fetch_rows("quota_add", holder, name, float(amount))

    async def load_usage(self, tenant: int, holders: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
        """Loads the usage of each holder today, and in this minute, by limit."""
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
            active = await connection.fetch_value("active_memories") or 0
        operator_limits, own_limits = (row["limits"], row["own"] or {}) if row else ({}, {})
        used = await self.load_usage(tenant, [TENANT_QUOTA_HOLDER])
        return (
            combine_limits(operator_limits, own_limits),
            own_limits,
            used[TENANT_QUOTA_HOLDER] | {MEMORIES: active},
        )

    async def update_tenant_limits(self, tenant: int, changes: Mapping[str, int] | None) -> None:
        """Sets some of a tenant's own limits; None resets all."""
        async with self._db.tenant_transaction(tenant) as connection:
            await update_setting(connection, "*", "limits", changes)


def _is_current(name: str, at: datetime, now: datetime) -> bool:
    """Whether the counted period has not ended yet."""
    if name.endswith("_per_minute"):
        return now - at < timedelta(minutes=1)
    return at.astimezone(UTC).date() == now.date()


@dataclass(frozen=True)
class LlmDailyUsage:
    """Calls of a day, those of them that failed, and its tokens."""

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class LlmUsageStore:
    """The daily budgets (UTC) of all tenants: calls and tokens, or a tenant's own lower limits."""

    def __init__(self, database: Database, calls: int, tokens: int) -> None:
        self._db, self._calls, self._tokens = database, calls, tokens
        self._quotas = QuotaStore(database)

    async def load_limits(self, tenant: int) -> tuple[int, int, Mapping[str, int]]:
        """Calls and tokens a day that are in force, and what the tenant has set."""
        async with self._db.tenant_transaction(tenant) as connection:
            own_limits: dict[str, int] = (
                await connection.fetch_value("setting_get", "*", "llm") or {}
            )
        calls = min(self._calls, own_limits.get("calls_per_day", self._calls))
        return calls, min(self._tokens, own_limits.get("tokens_per_day", self._tokens)), own_limits

    async def update_limits(self, tenant: int, changes: Mapping[str, int] | None) -> None:
        """Sets some of the tenant's own limits; None resets all."""
        async with self._db.tenant_transaction(tenant) as connection:
            await update_setting(connection, "*", "llm", changes)

    async def reserve_call(self, tenant: int, principal: Principal | None = None) -> bool:
        """Counts one more call; False if the budget of the day is spent.

        A call for the holder of a key is also refused by that key's own budget.
        """
        limit = principal.limits.llm_tokens_per_day if principal else None
        if principal is not None and limit is not None:
            holder = quota_holder_of(principal.key_id)
            used = await self._quotas.load_usage(tenant, [holder])
            if used[holder].get(LLM_TOKENS_PER_DAY, 0) >= limit:
                return False
        async with self._db.tenant_transaction(tenant) as connection:
            return (
                await connection.fetch_row("llm_usage_take", self._calls, self._tokens) is not None
            )

    async def record_usage(
        self,
        tenant: int,
        principal: Principal | None,
        calls: int,
        failed: int,
        input_tokens: int,
        output_tokens: int,
    ) -> None:
        """Counts further calls, failed ones and tokens."""
        if principal is not None and principal.limits.llm_tokens_per_day is not None:
            await self._quotas.add(
                tenant,
                quota_holder_of(principal.key_id),
                LLM_TOKENS_PER_DAY,
                input_tokens + output_tokens,
            )
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("llm_usage_add", calls, failed, input_tokens, output_tokens)

    async def load_today(self, tenant: int) -> LlmDailyUsage:
        """Loads a tenant's usage of today."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("llm_usage_today")
        return LlmDailyUsage(**row) if row else LlmDailyUsage()

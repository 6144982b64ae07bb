"""Counts each tenant's daily calls and tokens of language models against its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.domain.access.principals import (
    LLM_TOKENS_A_DAY,
    get_current_principal,
    quota_holder_of,
)
from reverie.store.db.database import Database
from reverie.store.platform.quotas import QuotaStore


@dataclass(frozen=True)
class LlmDailyUsage:
    """Calls of a day, those of them that failed, and tokens sent and received."""

    calls: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0


class LlmUsageStore:
    """The budgets of all tenants: so many calls and so many tokens a day (UTC) each, or what a
    tenant has set where that is less."""

    def __init__(self, database: Database, calls: int, tokens: int) -> None:
        self._db, self._calls, self._tokens = database, calls, tokens
        self._quotas = QuotaStore(database)

    async def load_limits(self, tenant: int) -> tuple[int, int, Mapping[str, int]]:
        """Calls and tokens a day that are in force, and what the tenant has set."""
        async with self._db.tenant_transaction(tenant) as connection:
            own_limits: dict[str, int] = await connection.fetch_value("llm_limits_get") or {}
        calls = min(self._calls, own_limits.get("calls_a_day", self._calls))
        return calls, min(self._tokens, own_limits.get("tokens_a_day", self._tokens)), own_limits

    async def update_limits(self, tenant: int, changes: Mapping[str, int] | None) -> None:
        """Sets some of the tenant's own limits; None takes all back."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("settings_lock")
            if changes is None:
                await connection.fetch_rows("llm_limits_reset")
            else:
                await connection.fetch_rows(
                    "llm_limits_put",
                    {**(await connection.fetch_value("llm_limits_get") or {}), **changes},
                )

    async def reserve_call(self, tenant: int) -> bool:
        """Counts one more call; False where the budget of the day is spent.

        A call that is made for the holder of a key is refused by that key's own budget too.
        """
        if not await self._key_has_budget():
            return False
        async with self._db.tenant_transaction(tenant) as connection:
            return (
                await connection.fetch_row("llm_usage_take", self._calls, self._tokens) is not None
            )

    async def record_usage(
        self, tenant: int, calls: int, failed: int, input_tokens: int, output_tokens: int
    ) -> None:
        """Counts further calls, failed ones and tokens."""
        principal = get_current_principal()
        if principal is not None and principal.limits.llm_tokens_a_day is not None:
            await self._quotas.add(
                tenant,
                quota_holder_of(principal.key_id),
                LLM_TOKENS_A_DAY,
                input_tokens + output_tokens,
            )
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows("llm_usage_add", calls, failed, input_tokens, output_tokens)

    async def _key_has_budget(self) -> bool:
        principal = get_current_principal()
        limit = principal.limits.llm_tokens_a_day if principal else None
        if principal is None or limit is None:
            return True
        holder = quota_holder_of(principal.key_id)
        used = await self._quotas.load_usage(principal.tenant, [holder])
        return used[holder].get(LLM_TOKENS_A_DAY, 0) < limit

    async def load_today(self, tenant: int) -> LlmDailyUsage:
        """What a tenant spent today."""
        async with self._db.tenant_transaction(tenant) as connection:
            row = await connection.fetch_row("llm_usage_today")
        return LlmDailyUsage(**row) if row else LlmDailyUsage()

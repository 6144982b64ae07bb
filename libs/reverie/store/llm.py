"""What tenants ask of a language model, counted by day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.store.database import Database


@dataclass(frozen=True)
class LlmDay:
    """Calls of a day, those of them that failed, and tokens sent and received."""

    calls: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0


class LlmLedger:
    """The budgets of all tenants: so many calls and so many tokens a day (UTC) each, or what a
    tenant has set where that is less."""

    def __init__(self, database: Database, calls: int, tokens: int) -> None:
        self._db, self._calls, self._tokens = database, calls, tokens

    async def limits(self, tenant: int) -> tuple[int, int, Mapping[str, int]]:
        """Calls and tokens a day that are in force, and what the tenant has set."""
        async with self._db.tenant(tenant) as t:
            kept: dict[str, int] = await t.value("llm_set") or {}
        calls = min(self._calls, kept.get("calls_a_day", self._calls))
        return calls, min(self._tokens, kept.get("tokens_a_day", self._tokens)), kept

    async def change(self, tenant: int, asked: Mapping[str, int] | None) -> None:
        """Sets some of the tenant's own limits; None takes all back."""
        async with self._db.tenant(tenant) as t:
            if asked is None:
                await t.rows("llm_reset")
            else:
                await t.rows("llm_put", {**(await t.value("llm_set") or {}), **asked})

    async def take(self, tenant: int) -> bool:
        """Counts one more call; False where the budget of the day is spent."""
        async with self._db.tenant(tenant) as t:
            return await t.row("llm_take", self._calls, self._tokens) is not None

    async def book(self, tenant: int, calls: int, failed: int, sent: int, received: int) -> None:
        """Counts further calls, failed ones and tokens."""
        async with self._db.tenant(tenant) as t:
            await t.rows("llm_book", calls, failed, sent, received)

    async def today(self, tenant: int) -> LlmDay:
        """What a tenant spent today."""
        async with self._db.tenant(tenant) as t:
            row = await t.row("llm_today")
        return LlmDay(**row) if row else LlmDay()

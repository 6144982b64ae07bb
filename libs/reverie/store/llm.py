"""What tenants ask of a language model, counted by day."""

from __future__ import annotations

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
    """The budgets of all tenants: so many calls and so many tokens a day (UTC) each."""

    def __init__(self, database: Database, calls: int, tokens: int) -> None:
        self._db, self._calls, self._tokens = database, calls, tokens

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

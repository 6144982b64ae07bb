"""What tenants ask of a language model, counted by day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reverie.domain.access import acting_for
from reverie.domain.limits import LLM_TOKENS_A_DAY, holder_of
from reverie.store.database import Database
from reverie.store.meters import Allowances


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
        self._keys = Allowances(database)

    async def limits(self, tenant: int) -> tuple[int, int, Mapping[str, int]]:
        """Calls and tokens a day that are in force, and what the tenant has set."""
        async with self._db.tenant(tenant) as t:
            kept: dict[str, int] = await t.value("llm_set") or {}
        calls = min(self._calls, kept.get("calls_a_day", self._calls))
        return calls, min(self._tokens, kept.get("tokens_a_day", self._tokens)), kept

    async def change(self, tenant: int, asked: Mapping[str, int] | None) -> None:
        """Sets some of the tenant's own limits; None takes all back."""
        async with self._db.tenant(tenant) as t:
            await t.rows("settings_lock")
            if asked is None:
                await t.rows("llm_reset")
            else:
                await t.rows("llm_put", {**(await t.value("llm_set") or {}), **asked})

    async def take(self, tenant: int) -> bool:
        """Counts one more call; False where the budget of the day is spent.

        A call that is made for the holder of a key is refused by that key's own budget too.
        """
        if not await self._key_has_left():
            return False
        async with self._db.tenant(tenant) as t:
            return await t.row("llm_take", self._calls, self._tokens) is not None

    async def book(self, tenant: int, calls: int, failed: int, sent: int, received: int) -> None:
        """Counts further calls, failed ones and tokens."""
        who = acting_for()
        if who is not None and who.limits.llm_tokens_a_day is not None:
            await self._keys.add(tenant, holder_of(who.key_id), LLM_TOKENS_A_DAY, sent + received)
        async with self._db.tenant(tenant) as t:
            await t.rows("llm_book", calls, failed, sent, received)

    async def _key_has_left(self) -> bool:
        who = acting_for()
        limit = who.limits.llm_tokens_a_day if who else None
        if who is None or limit is None:
            return True
        holder = holder_of(who.key_id)
        used = await self._keys.used(who.tenant, [holder])
        return used[holder].get(LLM_TOKENS_A_DAY, 0) < limit

    async def today(self, tenant: int) -> LlmDay:
        """What a tenant spent today."""
        async with self._db.tenant(tenant) as t:
            row = await t.row("llm_today")
        return LlmDay(**row) if row else LlmDay()

"""Settings of a tenant and of a project, of which several set some at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from reverie.domain.dreaming import DEFAULT
from reverie.store.briefing import Briefings
from reverie.store.dream_runs import DreamLimits
from reverie.store.llm import LlmLedger
from reverie.store.meters import Allowances
from reverie.testing.servers import Database
from tests.integration.store_parts import admin_rows, open_store

Setting = Callable[[dict[str, int]], Awaitable[object]]
SET = "select value from project_setting where name = %s"


async def test_who_sets_one_thing_takes_nothing_back_that_another_sets(database: Database) -> None:
    async with open_store(database) as store:
        number, who = store.me.tenant, store.me
        dreams, ledger = DreamLimits(store.db), LlmLedger(store.db, 9, 9)
        briefings, allowances = Briefings(store.db), Allowances(store.db)
        settings: Mapping[str, tuple[Setting, tuple[str, ...]]] = {
            "dream": (
                lambda one: dreams.change(number, "p", one, DEFAULT),
                ("segments", "chars", "turns", "idle_minutes", "every_minutes"),
            ),
            "llm": (lambda one: ledger.change(number, one), ("calls_a_day", "tokens_a_day")),
            "context": (
                lambda one: briefings.set_budgets(who, "p", one),
                ("hot", "warm", "stale", "session", "files"),
            ),
            "limits": (
                lambda one: allowances.limit_tenant(number, one),
                ("requests_a_day", "memories_a_day", "bytes_a_day"),
            ),
        }
        for name, (change, fields) in settings.items():
            for many in range(1, 6):
                await asyncio.gather(*(change({field: many}) for field in fields))
                [(kept,)] = admin_rows(store.admin_url, SET, name)
                assert kept == dict.fromkeys(fields, many), name

"""Concurrent changes of different settings do not overwrite each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS
from reverie.store.platform.quotas import LlmUsageStore, QuotaStore
from reverie.store.sessions.context import ContextStore
from reverie.store.sessions.dream_runs import DreamLimitStore
from tests.support.store_setup import Store, admin_rows

Setting = Callable[[dict[str, int]], Awaitable[object]]
SET = "select value from project_setting where tenant = %s and name = %s"


async def test_concurrent_changes_of_different_settings_are_all_kept(shared_store: Store) -> None:
    store = shared_store
    number, who = store.me.tenant, store.me
    dreams, ledger = DreamLimitStore(store.db), LlmUsageStore(store.db, 9, 9)
    briefings, allowances = ContextStore(store.db), QuotaStore(store.db)
    settings: Mapping[str, tuple[Setting, tuple[str, ...]]] = {
        "dream": (
            lambda one: dreams.update(number, "p", one, DEFAULT_THRESHOLDS),
            ("segments", "chars", "turns", "idle_minutes", "interval_minutes"),
        ),
        "llm": (lambda one: ledger.update_limits(number, one), ("calls_per_day", "tokens_per_day")),
        "context": (
            lambda one: briefings.set_budgets(who, "p", one),
            ("hot", "warm", "stale", "session", "files"),
        ),
        "limits": (
            lambda one: allowances.update_tenant_limits(number, one),
            ("requests_per_day", "memories_per_day", "bytes_per_day"),
        ),
    }
    for name, (change, fields) in settings.items():
        for many in range(1, 4):
            await asyncio.gather(*(change({field: many}) for field in fields))
            [(kept,)] = admin_rows(store.admin_url, SET, number, name)
            assert kept == dict.fromkeys(fields, many), name

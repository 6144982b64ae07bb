"""Changes whose event was lost are applied later, and given up where that fails each time."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.contracts.git import GitChange
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.background_work import LeaderLock, OutboxTable
from reverie.store.platform.encryption import create_cipher
from reverie.store.platform.vault import VaultStore
from reverie.store.platform.webhooks import WebhookStore
from reverie.store.staleness.git_changes import GitChangeStore
from reverie.store.staleness.stale_marks import StaleMarkStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks import change_handlers
from reverie_services.staleness.webhooks.signatures import UnverifiedBodies
from tests.support.stack import eventually
from tests.support.store_setup import admin_rows, open_store

REFUSED = """
create function refused() returns trigger language plpgsql as $$
begin
  raise exception 'this one cannot be applied';
end $$;
create trigger refused before update on git_event for each row execute function refused();
select 1
"""


async def test_a_change_that_fails_each_time_is_given_up_and_counted(
    database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_handlers, "CATCH_UP_INTERVAL", 0.0)
    monkeypatch.setattr(change_handlers, "SWEEP_AGE", 0.0)
    async with open_store(database) as store:
        parts = StalenessDependencies(
            GitChangeStore(store.db),
            MemoryStore(store.db),
            StaleMarkStore(store.db),
            WebhookStore(store.db, create_cipher(None)),
            IdempotencyTable(store.db),
            VaultStore(store.db).load_redactor,
            EventPublisher(AsyncMock(spec=MessageBus), OutboxTable(store.db)),
            UnverifiedBodies(1 << 20, 1 << 20),
        )
        change = GitChange.model_validate(
            {
                "project": "p",
                "branch": "main",
                "after": "a" * 40,
                "files": [{"path": "a.py", "status": "deleted"}],
            }
        )
        await parts.changes.add(store.me, change, {})
        admin_rows(store.admin_url, REFUSED)

        async def gave_up() -> bool:
            return await parts.changes.list_unprocessed(0.0) == []

        loop = asyncio.create_task(change_handlers.run_catch_up_loop(parts))
        try:
            await eventually(gave_up)
        finally:
            loop.cancel()
        assert admin_rows(store.admin_url, "select attempts from work_failure") == [(5,)]
        backlog = await LeaderLock(store.db).count_backlog()
        assert (backlog.changes, backlog.failed_changes) == (0, 1)

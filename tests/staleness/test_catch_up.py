"""Changes whose event was lost are applied later, and given up where that fails each time."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import pytest

from reverie.bus.interface import MessageBus
from reverie.contracts.memories.git import GitChange
from reverie.store.platform.leader_lock import LeaderLock
from reverie.testing.servers import DatabaseUrls
from reverie_services.staleness.marks import change_handlers
from tests.staleness.staleness_dependencies import build_parts
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
        parts = build_parts(store, AsyncMock(spec=MessageBus))
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

"""The ingest scheduler processes memories whose events were lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import AsyncMock

import pytest

from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.inference.model_manager import ModelManager
from reverie.runtime.settings.settings import Settings
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.outbox import OutboxTable
from reverie.store.vault.vault import VaultStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.dependencies import EnrichmentDependencies, SchedulerDependencies
from reverie_services.ingest.scheduler import ROUND_SIZE, PostponedMemories, Scheduler
from tests.support.stack import eventually
from tests.support.store_setup import Store, admin_rows, new, open_store, write

MANY = ROUND_SIZE + 10
MAX_ATTEMPTS = 5
ID = new_id()
REFUSED = """
create function refused() returns trigger language plpgsql as $$
begin
  raise exception 'this one cannot be linked';
end $$;
create trigger refused before insert on edge for each row
  when (new.src = '{}') execute function refused();
select 1
"""


@dataclass(frozen=True)
class Place:
    """Ingest without a model, and more memories than a round takes that no event reached."""

    scheduler: Scheduler
    store: Store
    bus: AsyncMock


@pytest.fixture(name="place")
async def _place(database: DatabaseUrls, tmp_path: Path) -> AsyncIterator[Place]:
    async with open_store(database) as store:
        scope = "project/shop"
        await write(store, *(new(f"see src/part{n}.py", scope=scope) for n in range(MANY)))
        bus = AsyncMock(spec=MessageBus)
        bus.lag.return_value = 0
        publisher = EventPublisher(bus, OutboxTable(store.db))
        enrichment = EnrichmentDependencies(
            ModelManager("none", tmp_path, None, 1, False),
            EnrichmentStore(store.db),
            DuplicateStore(store.db),
            VaultStore(store.db).load_redactor,
            publisher,
        )
        own: dict[str, Any] = {
            "settings": Settings(scheduler_interval=0.01),
            "overdue_seconds": 0.0,
            "enrichment": enrichment,
            "publisher": publisher,
        }
        stores = {
            name: kind(store.db)
            for name, kind in get_type_hints(SchedulerDependencies).items()
            if name not in own
        }
        yield Place(Scheduler(SchedulerDependencies(**own, **stores)), store, bus)


async def test_without_a_model_every_missed_memory_gets_its_anchors(place: Place) -> None:
    async def anchored() -> bool:
        found = admin_rows(place.store.admin_url, "select 1 from edge where kind = 'touches'")
        return len(found) == MANY

    clock = asyncio.create_task(place.scheduler.run())
    try:
        await eventually(anchored)
    finally:
        clock.cancel()
        with suppress(asyncio.CancelledError):
            await clock


async def test_memories_that_await_their_turn_on_the_bus_are_left_to_it(place: Place) -> None:
    for on_bus, found in ((MANY, 0), (1, ROUND_SIZE)):
        place.bus.lag.return_value = on_bus
        assert len(await place.scheduler.find_missed()) == found
    place.bus.lag.side_effect = Unavailable("NATS", "it is away")
    assert len(await place.scheduler.find_missed()) == ROUND_SIZE


async def test_changes_that_no_recall_index_needs_are_deleted(place: Place) -> None:
    url = place.store.admin_url
    aged = "update memory_change set at = now() - interval '%s minutes' where memory = '%s'"
    [(old,), (young,)] = admin_rows(url, "select id from memory order by id limit 2")
    admin_rows(url, aged % (121, old))
    admin_rows(url, aged % (110, young))

    async def is_swept() -> bool:
        aged = "select memory from memory_change where at < now() - interval '100 minutes'"
        return admin_rows(url, aged) == [(young,)]

    assert not await is_swept()
    clock = asyncio.create_task(place.scheduler.run())
    try:
        await eventually(is_swept)
    finally:
        clock.cancel()
        with suppress(asyncio.CancelledError):
            await clock


async def test_a_round_skips_what_an_earlier_round_postponed(place: Place) -> None:
    scheduler = place.scheduler
    first = await scheduler.find_missed()
    scheduler.postponed.ids.update(memory for _, _, memory in first)
    second = await scheduler.find_missed()
    scheduler.postponed.ids.update(memory for _, _, memory in second)
    assert (len(first), len(second)) == (ROUND_SIZE, MANY - ROUND_SIZE)
    assert len(scheduler.postponed.ids) == MANY
    assert await scheduler.find_missed() == []


async def test_a_memory_enriched_meanwhile_is_not_postponed(place: Place) -> None:
    missed = await place.scheduler.find_missed()
    admin_rows(place.store.admin_url, "update memory set enriched_version = version returning 1")
    await place.scheduler.enrich_missed(missed)
    assert place.scheduler.postponed.ids == set()


async def test_postponed_memories_are_retried_when_the_model_is_available_and_after_an_hour() -> (
    None
):
    left = PostponedMemories()
    left.clear_if_due(False, 0.0)
    left.ids.add(ID)
    left.clear_if_due(False, 3599.0)
    assert left.ids == {ID}
    left.clear_if_due(True, 3599.0)
    assert left.ids == set()
    left.ids.add(ID)
    left.clear_if_due(True, 2 * 3600.0)
    assert left.ids == set()


async def test_a_memory_that_fails_each_time_is_given_up_and_counted(place: Place) -> None:
    scheduler, url, store = place.scheduler, place.store.admin_url, EnrichmentStore(place.store.db)
    [(poison,)] = admin_rows(url, "select id from memory order by id limit 1")
    admin_rows(url, REFUSED.format(poison))
    for _ in range(MAX_ATTEMPTS):
        assert poison in {memory for _, _, memory in await store.list_overdue(0.0, MANY)}
        scheduler.postponed.ids.clear()
        while missed := await scheduler.find_missed():
            await scheduler.enrich_missed(missed)
    overdue = await store.list_overdue(0.0, MANY)
    assert poison not in {memory for _, _, memory in overdue}
    lock = LeaderLock(place.store.db)
    backlog = await lock.count_backlog()
    assert (backlog.failed_memories, backlog.memories) == (1, len(overdue))
    # An edit makes another version of it, which is tried again.
    admin_rows(
        url, "update memory set version = version + 1 where id = %s returning 1", str(poison)
    )
    assert poison in {memory for _, _, memory in await store.list_overdue(0.0, MANY)}
    assert (await lock.count_backlog()).failed_memories == 0

"""The ingest scheduler processes memories whose events were lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast, get_type_hints
from unittest.mock import AsyncMock

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.runtime.settings.settings import Settings
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.platform.leader_lock import LeaderLock
from reverie_services.ingest import scheduler as scheduler_module
from reverie_services.ingest.dependencies import EnrichmentDependencies, SchedulerDependencies
from reverie_services.ingest.scheduler import PostponedMemories, Scheduler
from tests.ingest.enrich.enrichment_setup import REFUSED, build_enrichment
from tests.support.stack import eventually
from tests.support.store_setup import Store, admin_rows, new, write

ROUND_SIZE = 10
MANY = ROUND_SIZE + 4
MAX_ATTEMPTS = 5
ID = new_id()


@pytest.fixture
def enrichment(store: Store) -> EnrichmentDependencies:
    made = build_enrichment(store)
    cast("AsyncMock", made.publisher.bus).lag.return_value = 0
    return made


@pytest.fixture
async def scheduler(
    store: Store, enrichment: EnrichmentDependencies, monkeypatch: pytest.MonkeyPatch
) -> Scheduler:
    """Of an ingest without a model; more memories than a round takes were reached by no event."""
    monkeypatch.setattr(scheduler_module, "ROUND_SIZE", ROUND_SIZE)
    scope = "project/shop"
    await write(store, *(new(f"see src/part{n}.py", scope=scope) for n in range(MANY)))
    own: dict[str, Any] = {
        "settings": Settings(scheduler_interval=0.01),
        "overdue_seconds": 0.0,
        "enrichment": enrichment,
        "publisher": enrichment.publisher,
    }
    stores = {
        name: kind(store.db)
        for name, kind in get_type_hints(SchedulerDependencies).items()
        if name not in own
    }
    return Scheduler(SchedulerDependencies(**own, **stores))


@asynccontextmanager
async def running(scheduler: Scheduler) -> AsyncIterator[None]:
    task = asyncio.create_task(scheduler.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_without_a_model_every_missed_memory_gets_its_anchors(
    store: Store, scheduler: Scheduler
) -> None:
    async def anchored() -> bool:
        found = admin_rows(store.admin_url, "select 1 from edge where kind = 'touches'")
        return len(found) == MANY

    async with running(scheduler):
        await eventually(anchored)


async def test_memories_that_await_their_turn_on_the_bus_are_left_to_it(
    scheduler: Scheduler, enrichment: EnrichmentDependencies
) -> None:
    bus = cast("AsyncMock", enrichment.publisher.bus)
    for on_bus, found in ((MANY, 0), (1, ROUND_SIZE)):
        bus.lag.return_value = on_bus
        assert len(await scheduler.find_missed()) == found
    bus.lag.side_effect = Unavailable("NATS", "it is away")
    assert len(await scheduler.find_missed()) == ROUND_SIZE


async def test_changes_that_no_recall_index_needs_are_deleted(
    store: Store, scheduler: Scheduler
) -> None:
    url = store.admin_url
    aged = "update memory_change set at = now() - interval '%s minutes' where memory = '%s'"
    [(old,), (young,)] = admin_rows(url, "select id from memory order by id limit 2")
    admin_rows(url, aged % (121, old))
    admin_rows(url, aged % (110, young))

    async def is_swept() -> bool:
        aged = "select memory from memory_change where at < now() - interval '100 minutes'"
        return admin_rows(url, aged) == [(young,)]

    assert not await is_swept()
    async with running(scheduler):
        await eventually(is_swept)


async def test_a_round_skips_what_an_earlier_round_postponed(scheduler: Scheduler) -> None:
    first = await scheduler.find_missed()
    scheduler.postponed.ids.update(memory for _, _, memory in first)
    second = await scheduler.find_missed()
    scheduler.postponed.ids.update(memory for _, _, memory in second)
    assert (len(first), len(second)) == (ROUND_SIZE, MANY - ROUND_SIZE)
    assert len(scheduler.postponed.ids) == MANY
    assert await scheduler.find_missed() == []


async def test_a_memory_enriched_meanwhile_is_not_postponed(
    store: Store, scheduler: Scheduler
) -> None:
    missed = await scheduler.find_missed()
    admin_rows(store.admin_url, "update memory set enriched_version = version returning 1")
    await scheduler.enrich_missed(missed)
    assert scheduler.postponed.ids == set()


async def test_postponed_memories_are_retried_with_a_model_and_after_an_hour() -> None:
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


async def test_a_memory_that_fails_each_time_is_given_up_and_counted(
    store: Store, scheduler: Scheduler
) -> None:
    url, memories = store.admin_url, EnrichmentStore(store.db)
    [(poison,)] = admin_rows(url, "select id from memory order by id limit 1")
    admin_rows(url, REFUSED.format("insert on edge", f"new.src = '{poison}'"))
    for _ in range(MAX_ATTEMPTS):
        assert poison in {memory for _, _, memory in await memories.list_overdue(0.0, MANY)}
        scheduler.postponed.ids.clear()
        while missed := await scheduler.find_missed():
            await scheduler.enrich_missed(missed)
    overdue = await memories.list_overdue(0.0, MANY)
    assert poison not in {memory for _, _, memory in overdue}
    lock = LeaderLock(store.db)
    backlog = await lock.count_backlog()
    assert (backlog.failed_memories, backlog.memories) == (1, len(overdue))
    # An edit makes another version of it, which is tried again.
    admin_rows(
        url, "update memory set version = version + 1 where id = %s returning 1", str(poison)
    )
    assert poison in {memory for _, _, memory in await memories.list_overdue(0.0, MANY)}
    assert (await lock.count_backlog()).failed_memories == 0

"""Outbox rows are claimed by one relay at a time and deleted when published."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.outbox import OutboxTable
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, new, open_store, write


@pytest.fixture
async def store(database: DatabaseUrls) -> AsyncIterator[Store]:
    async with open_store(database) as made:
        await write(made, *(new(f"memory {n}") for n in range(10)))
        yield made


async def test_two_relays_claim_different_rows(store: Store) -> None:
    outbox = OutboxTable(store.db)
    async with outbox.claim(6, 0) as one, outbox.claim(6, 0) as two:
        first, second = {row.id for row in one.rows}, {row.id for row in two.rows}
        assert (len(first), len(second)) == (6, 4)
        assert not first & second
        async with outbox.claim(6, 0) as three:
            assert three.rows == []


async def test_rows_are_claimed_in_the_order_they_were_written(store: Store) -> None:
    async with OutboxTable(store.db).claim(10, 0) as claim:
        order = [row.id for row in claim.rows]
    written = [row[0] for row in admin_rows(store.admin_url, "select id from outbox order by at")]
    assert order == written


async def test_finished_rows_are_removed_and_the_rest_claimed_again(store: Store) -> None:
    outbox = OutboxTable(store.db)
    async with outbox.claim(10, 0) as claim:
        done = [row.id for row in claim.rows[:4]]
        await claim.done(done)
    async with outbox.claim(10, 0) as rest:
        assert len(rest.rows) == 6
        assert not set(done) & {row.id for row in rest.rows}


async def test_rows_of_a_killed_relay_are_claimed_again(store: Store) -> None:
    outbox = OutboxTable(store.db)

    async def relay() -> None:
        async with outbox.claim(10, 0) as claim:
            await claim.done([row.id for row in claim.rows])
            admin_rows(
                store.admin_url,
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where datname = current_database() and state = 'idle in transaction'",
            )

    with pytest.raises(Unavailable):
        await relay()
    async with outbox.claim(10, 0) as again:
        assert len(again.rows) == 10


async def test_rows_of_a_failed_relay_are_claimed_again(store: Store) -> None:
    outbox = OutboxTable(store.db)

    async def relay() -> None:
        async with outbox.claim(10, 0) as claim:
            await claim.done([row.id for row in claim.rows])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await relay()
    async with outbox.claim(10, 0) as again:
        assert len(again.rows) == 10


async def test_a_backlog_is_drained_once_by_four_relays(store: Store) -> None:
    outbox = OutboxTable(store.db)
    published: list[object] = []

    async def relay() -> None:
        while True:
            async with outbox.claim(2, 0) as claim:
                if not claim.rows:
                    return
                published.extend(row.id for row in claim.rows)
                await claim.done([row.id for row in claim.rows])

    await asyncio.gather(*(relay() for _ in range(4)))
    assert len(published) == len(set(published)) == 10
    assert (await outbox.age()) == (0, 0.0)


async def test_one_of_many_processes_holds_the_leader_lock(store: Store) -> None:
    clock = LeaderLock(store.db)
    async with clock.acquire() as first, clock.acquire() as second:
        assert (first, second) == (True, False)
    async with clock.acquire() as again:
        assert again is True

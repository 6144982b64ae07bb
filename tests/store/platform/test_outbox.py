"""Outbox rows are claimed by one relay at a time and deleted when published."""

from __future__ import annotations

import asyncio

import pytest

from reverie.domain.core.errors import Unavailable
from reverie.store.platform.leader_lock import LeaderLock
from reverie.store.platform.outbox import OutboxTable
from tests.support.store_setup import Store, admin_rows, new, write


@pytest.fixture
async def outbox(store: Store) -> OutboxTable:
    await write(store, *(new(f"memory {n}") for n in range(10)))
    return OutboxTable(store.db)


async def test_two_relays_claim_different_rows_in_the_order_of_writing(
    store: Store, outbox: OutboxTable
) -> None:
    written = [row[0] for row in admin_rows(store.admin_url, "select id from outbox order by at")]
    async with outbox.claim(6, 0) as one, outbox.claim(6, 0) as two:
        assert [row.id for row in (*one.rows, *two.rows)] == written
        assert (len(one.rows), len(two.rows)) == (6, 4)
        async with outbox.claim(6, 0) as three:
            assert three.rows == []


async def test_finished_rows_are_removed_and_the_rest_claimed_again(outbox: OutboxTable) -> None:
    async with outbox.claim(10, 0) as claim:
        done = [row.id for row in claim.rows[:4]]
        await claim.done(done)
    async with outbox.claim(10, 0) as rest:
        assert len(rest.rows) == 6
        assert not set(done) & {row.id for row in rest.rows}


async def test_rows_of_a_failed_or_killed_relay_are_claimed_again(
    store: Store, outbox: OutboxTable
) -> None:
    async def relay(end: Exception | None) -> None:
        async with outbox.claim(10, 0) as claim:
            await claim.done([row.id for row in claim.rows])
            if end is not None:
                raise end
            admin_rows(
                store.admin_url,
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where datname = current_database() and state = 'idle in transaction'",
            )

    for end, seen in ((RuntimeError(), RuntimeError), (None, Unavailable)):
        with pytest.raises(seen):
            await relay(end)
        async with outbox.claim(10, 0) as again:
            assert len(again.rows) == 10


async def test_a_backlog_is_drained_once_by_four_relays(outbox: OutboxTable) -> None:
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

"""Connections are reused without the pool and returned to it in time."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from prometheus_client import CollectorRegistry

from reverie.store.db import connection_pool as hands
from reverie.store.db.connection_pool import ConnectionPool, PoolMetrics
from reverie.store.db.connections import open_pool
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import eventually


async def test_a_released_connection_serves_the_next_or_the_waiting_caller(
    database: DatabaseUrls,
) -> None:
    async with open_pool(database.service_url, 2) as pool:
        hand = ConnectionPool("main", pool, 5.0, PoolMetrics(CollectorRegistry()))
        async with hand.acquire() as one:
            first = await one.fetchval("select pg_backend_pid()")
            assert (hand.busy, hand.limit) == (1, 2)
        assert (hand.busy, hand.idle) == (0, pool.get_size())
        async with hand.acquire() as one:
            assert await one.fetchval("select pg_backend_pid()") == first

        async def asked() -> int:
            async with hand.acquire() as other:
                await asyncio.sleep(0)
                return int(await other.fetchval("select 1"))

        assert await asyncio.gather(*(asked() for _ in range(40))) == [1] * 40
        assert hand.busy == 0
        await hand.close()
        assert pool.get_idle_size() == pool.get_size()


async def test_a_broken_or_lost_connection_is_not_reused(database: DatabaseUrls) -> None:
    async with open_pool(database.service_url, 1) as pool:
        hand = ConnectionPool("main", pool, 5.0, PoolMetrics(CollectorRegistry()))
        with pytest.raises(asyncpg.UndefinedTableError):
            async with hand.acquire() as one:
                await one.execute("begin; select * from nowhere")
        async with hand.acquire() as one:
            assert not one.is_in_transaction()
            await one.execute("begin")
        async with hand.acquire() as one:
            assert not one.is_in_transaction()
            lost = one
            pid = await one.fetchval("select pg_backend_pid()")
        other = await asyncpg.connect(database.admin_url)
        await other.execute("select pg_terminate_backend($1)", pid)
        await other.close()
        await eventually(lambda: asyncio.sleep(0, not hands._is_reusable(lost)))
        async with hand.acquire() as one:
            assert await one.fetchval("select pg_backend_pid()") != pid
        await hand.close()


async def test_an_idle_connection_returns_to_the_pool(
    database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hands, "IDLE_SECONDS", 0.05)
    async with open_pool(database.service_url, 1) as pool:
        hand = ConnectionPool("main", pool, 5.0, PoolMetrics(CollectorRegistry()))
        async with hand.acquire():
            pass
        assert pool.get_idle_size() == 0
        await eventually(lambda: asyncio.sleep(0, pool.get_idle_size() == 1))


async def test_a_connection_released_after_the_end_returns_to_the_pool(
    database: DatabaseUrls,
) -> None:
    async with open_pool(database.service_url, 2) as pool:
        hand = ConnectionPool("main", pool, 5.0, PoolMetrics(CollectorRegistry()))
        async with hand.acquire():
            async with hand.acquire():
                pass
            await hand.close()
        assert pool.get_idle_size() == pool.get_size()

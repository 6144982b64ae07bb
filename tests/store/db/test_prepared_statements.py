"""The lifetime of prepared statements and query plans on a connection."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import asyncpg
import pytest

from reverie.store.db import connections
from reverie.store.db.connections import ReaderConnection, open_pool
from reverie.testing.servers import DatabaseUrls

ONE = "select relname from pg_class where oid = $1"


@pytest.fixture
async def reader(database: DatabaseUrls) -> AsyncIterator[ReaderConnection]:
    async with (
        open_pool(database.service_url, 1, ReaderConnection) as pool,
        pool.acquire() as connection,
    ):
        inner = connection._con  # type: ignore[attr-defined]
        assert isinstance(inner, ReaderConnection)
        yield inner


async def _plan(reader: ReaderConnection) -> str:
    return "\n".join(row[0] for row in await reader.fetch("explain execute kept(1)"))


async def test_a_cached_plan_is_renewed_after_its_lifetime(
    reader: ReaderConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reader.enter(1)
    await reader.execute(f"prepare kept(oid) as {ONE}")
    first = await _plan(reader)
    await reader.execute("set enable_indexscan = off; set enable_indexonlyscan = off")
    await reader.enter(1)
    assert await _plan(reader) == first
    monkeypatch.setattr(connections, "PLAN_CACHE_SECONDS", 0)
    await reader.enter(1)
    assert await _plan(reader) != first


@pytest.mark.parametrize("kind", [ReaderConnection, asyncpg.Connection])
async def test_prepared_statements_are_released_after_use(
    database: DatabaseUrls, kind: type[ReaderConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the collector looks through all of memory, which a service does once in minutes."""
    loop = asyncio.get_running_loop()

    def statements() -> int:
        return sum(type(one).__name__ == "PreparedStatementState" for one in gc.get_objects())

    async with open_pool(database.service_url, 1, kind) as pool, pool.acquire() as connection:
        gc.collect()
        gc.disable()
        try:
            await connection.fetchval("select 1")
            kept = statements()
            assert kept
            clock = loop.time
            for hours in range(1, 4):
                with monkeypatch.context() as later:
                    later.setattr(loop, "time", lambda ahead=hours: clock() + 3600 * ahead)
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                await connection.fetchval("select 1")
            assert statements() == kept
        finally:
            gc.enable()

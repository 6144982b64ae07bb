"""The lifetime of prepared statements on a connection."""

from __future__ import annotations

import asyncio
import gc

import asyncpg
import pytest

from reverie.store.db.connections import ReaderConnection, open_pool
from reverie.testing.servers import DatabaseUrls


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

"""An upgrade under load: the schema is migrated and ingest replaced, and no write is lost."""

from __future__ import annotations

import asyncio

from reverie.client import AsyncReverie
from reverie.embedded.ports import free_port
from reverie.store.migrate import migrate
from tests.chaos.served import World, served
from tests.chaos.walk import ALL
from tests.stack import eventually
from tests.tables import rows, value

WRITERS = 4
ROUNDS = 3 if ALL else 0
"""Versions between the first and the last; none in the suite, for each start costs seconds."""
TRIES = 60


async def _write(client: AsyncReverie, writer: int, stop: asyncio.Event) -> dict[str, str]:
    """What was acknowledged: contents by id."""
    kept: dict[str, str] = {}
    while not stop.is_set():
        content = f"Writer {writer} counts {len(kept)} herons at the mill of {'abcdefgh'[writer]}."
        made = await client.remember(content)
        assert made.status == "created"
        kept[str(made.id)] = content
    return kept


async def _more_than(world: World, many: int) -> None:
    """Waits until so many memories were written on top of those that there are."""
    admin = world.database.admin_url
    before = value(admin, "select count(*) from memory")

    async def grown() -> bool:
        return bool(value(admin, "select count(*) from memory") > before + many)

    await eventually(grown)


async def test_no_write_is_lost_or_doubled_while_ingest_is_replaced_and_the_schema_migrated(
    world: World,
) -> None:
    port, stop = free_port(), asyncio.Event()
    url = f"http://127.0.0.1:{port}"
    clients = [AsyncReverie(url, world.key, tries=TRIES) for _ in range(WRITERS)]
    async with served(world, "ingest", ingest_port=port) as first:
        writing = [
            asyncio.create_task(_write(one, number, stop)) for number, one in enumerate(clients)
        ]
        await _more_than(world, WRITERS)
        first.process.terminate()
        assert await first.process.wait() == 0
    for _ in range(ROUNDS):
        assert await asyncio.to_thread(migrate, world.database.admin_url) == []
        async with served(world, "ingest", ingest_port=port) as later:
            await _more_than(world, WRITERS)
            later.process.terminate()
            assert await later.process.wait() == 0
    assert await asyncio.to_thread(migrate, world.database.admin_url) == []
    async with served(world, "ingest", ingest_port=port):
        await _more_than(world, WRITERS)
        stop.set()
        acknowledged = [pair for done in await asyncio.gather(*writing) for pair in done.items()]
    for client in clients:
        await client.close()
    found = rows(
        world.database.admin_url, "select id::text, content from memory where kind <> 'entity'"
    )
    assert sorted(found) == sorted(acknowledged)
    assert len({content for _, content in acknowledged}) == len(acknowledged)

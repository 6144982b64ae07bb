"""An upgrade under load, from the baseline: the previous release runs on meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from chaos.crashes.service_processes import Served, ServiceStarter, World, quick_streams, served
from chaos.crashes.statement_walk import ALL
from reverie.client import AsyncReverie
from reverie.embedded.ports import find_free_port
from reverie.embedded.servers import postgres
from reverie.store.db import migrate as store_migrate
from reverie.store.db.migrate import list_pending_migrations, migrate
from reverie.store.platform.api_keys import NewApiKey, create_key
from reverie.testing.servers import DatabaseUrls, TestRun, ensure_postgres
from tests.support.previous_release import (
    KEY,
    MEMORIES,
    TURNS,
    migrate_by,
    path_of,
    previous_release,
)
from tests.support.stack import eventually
from tests.support.tables import rows, value

WRITERS = 4
TRIES = 60
SERVICES = ("ingest", "recall", "dream") if ALL else ("ingest",)
"""Of each release; in the suite just what the writers need, for each start costs seconds."""


@pytest.fixture
async def old_world(
    empty_database: DatabaseUrls, nats_url: str, test_run: TestRun, starter: ServiceStarter
) -> AsyncIterator[World]:
    """A database without a schema yet; the key is one of those that it will hold."""
    async with aiohttp.ClientSession() as http:
        folder = test_run.new_folder("upgraded")
        yield World(empty_database, nats_url, KEY, folder, http, starter)


def _with_one_more_migration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that something is applied, also where the newest release changed nothing."""
    store = Path(str(files("reverie.store")))
    for part in ("schema", "migrations"):
        shutil.copytree(store / part, folder / part)
    (folder / "migrations" / "9999_more.sql").write_text("alter table memory add column more text;")
    monkeypatch.setattr(store_migrate, "files", lambda _: folder)


async def _fill(world: World, url: str) -> None:
    """What the older release leaves: memories, and a session that nobody digested."""
    for kind, content in MEMORIES.items():
        body = {"content": content, "kind": kind, "scope": "project/mill"}
        await world.post(f"{url}/v1/remember", body)
    start = {"agent": "ann", "project": "mill"}
    session = (await world.post(f"{url}/v1/sessions/start", start))["session"]
    turns = [
        {"role": role, "content": said}
        for role, said in zip(("user", "assistant"), TURNS, strict=True)
    ]
    await world.post(f"{url}/v1/turns", {"session": session, "turns": turns})
    await world.post(f"{url}/v1/sessions/{session}/end", {})


async def _write(client: AsyncReverie, writer: int, stop: asyncio.Event) -> dict[str, str]:
    """What was acknowledged: contents by id."""
    kept: dict[str, str] = {}
    while not stop.is_set():
        content = f"Writer {writer} counts {len(kept)} herons at the mill of {'abcdefgh'[writer]}."
        made = await client.remember(content)
        assert made.status == "created"
        kept[str(made.id)] = content
        await asyncio.sleep(0.02)
    return kept


async def _more_than(world: World, many: int) -> None:
    """Waits until so many memories were written on top of those that there are."""
    admin = world.database.admin_url
    before = value(admin, "select count(*) from memory")

    async def grown() -> bool:
        return bool(value(admin, "select count(*) from memory") > before + many)

    await eventually(grown)


async def _ends(*services: Served) -> None:
    for one in services:
        one.process.terminate()
    assert [await one.process.wait() for one in services] == [0] * len(services)


async def _finds(world: World, gateway: Served, words: str) -> set[str]:
    """What recall finds of these words; nothing of it may be left out."""
    found = await world.post(f"{gateway.url}/v1/recall", {"query": words})
    return {one["content"] for one in found["memories"]}


async def _serves(world: World, one: dict[str, Served], nth: int) -> None:
    """Remembers, recalls and dreams: what every release does on any schema that is not older."""
    told = f"The miller of the {nth}th release grinds rye on Tuesdays."
    await world.post(f"{one['ingest'].url}/v1/remember", {"content": told, "scope": "project/mill"})
    assert told in await _finds(world, one["recall"], f"miller of the {nth}th release")
    for content in MEMORIES.values():
        assert content in await _finds(world, one["recall"], content)
    own, mill = one["ingest"].url, {"agent": "ann", "project": "mill"}
    session = (await world.post(f"{own}/v1/sessions/start", mill))["session"]
    turn = {"role": "user", "content": f"Remember: sluice {nth} is always closed on Sundays."}
    await world.post(f"{own}/v1/turns", {"session": session, "turns": [turn]})
    await world.post(f"{own}/v1/sessions/{session}/end", {})

    async def digested() -> bool:
        return bool(
            value(world.database.admin_url, "select count(*) from turn where run is null") == 0
        )

    await eventually(digested)
    for words in (f"sluice {nth}", "barges"):
        found = await _finds(world, one["recall"], f"{words} always")
        assert any(words in content for content in found), found


async def test_the_previous_release_keeps_serving_during_the_schema_upgrade_and_nothing_is_lost(
    old_world: World, test_run: TestRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, admin = old_world, old_world.database.admin_url
    older = await asyncio.to_thread(previous_release, world.folder / "older")
    await asyncio.to_thread(migrate_by, older, world.folder, admin, world.nats_url)
    create_key(admin, NewApiKey("upgraded"), KEY)
    await quick_streams(world.nats_url)
    postgres.create_service_logins(ensure_postgres(test_run), world.database.name)
    port, stop = find_free_port(), asyncio.Event()
    clients = [
        AsyncReverie(f"http://127.0.0.1:{port}", KEY, max_attempts=TRIES) for _ in range(WRITERS)
    ]
    async with AsyncExitStack() as stack:
        before = await _started(stack, world, port, PYTHONPATH=path_of(older))
        await _fill(world, before["ingest"].url)
        writing = [asyncio.create_task(_write(one, n, stop)) for n, one in enumerate(clients)]
        await _more_than(world, WRITERS)
        _with_one_more_migration(world.folder / "newer", monkeypatch)
        assert (await asyncio.to_thread(migrate, admin))[-1] == "9999_more"
        assert list_pending_migrations(admin) == []
        if ALL:
            await _serves(world, before, 1)
        await _more_than(world, WRITERS)
        await _ends(*before.values())
        after = await _started(stack, world, port)
        await _more_than(world, WRITERS)
        stop.set()
        acknowledged = [pair for done in await asyncio.gather(*writing) for pair in done.items()]
        if ALL:
            await _serves(world, after, 2)
    for client in clients:
        await client.close()
    found = rows(admin, "select id::text, content from memory where kind <> 'entity'")
    written = [(id, content) for id, content in found if content.startswith("Writer ")]
    assert sorted(written) == sorted(acknowledged)
    assert set(MEMORIES.values()) <= {content for _, content in found}
    assert len({content for _, content in acknowledged}) == len(acknowledged)


async def _started(stack: AsyncExitStack, world: World, port: int, **env: str) -> dict[str, Served]:
    """The services at once, ready: the sources of `PYTHONPATH`, where it is given."""

    async def one(name: str) -> Served:
        own: dict[str, Any] = {"embedding_model": "none", "recall_sparse": "off"}
        own |= {"ingest_port": port} if name == "ingest" else {}
        return await stack.enter_async_context(served(world, name, env or None, **own))

    return dict(zip(SERVICES, await asyncio.gather(*map(one, SERVICES)), strict=True))

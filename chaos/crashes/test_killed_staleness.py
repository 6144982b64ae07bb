"""The staleness service killed while it marks: marks are made once."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from chaos.crashes.service_processes import Served, World, served
from tests.support.stack import eventually
from tests.support.tables import blocked, holding, rows, value

SHA = "e" * 40
CHANGE = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "subject": "drop carts", "committed_at": "2099-01-01T00:00:00Z"}],
    "files": [
        {"path": "src/cart/total.ts", "status": "deleted"},
        {"path": "src/cart/new.ts", "old_path": "src/cart/old.ts", "status": "renamed"},
    ],
}
KNOWN = ("src/cart/total.ts sums the cart up", "src/cart/old.ts holds what is left")


FILES, EVERY = 5000, 100
ALL = "select count(*) from stale_mark"
TURN: Any = """select pg_advisory_xact_lock(
    hashtextextended('staleness shop', (select max(id) from tenant)))"""
"""Whose turn it is to work out a project's marks: those who wait are served in order."""
WAITING: Any = """select count(*) from pg_locks
    where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())"""


async def _known(world: World, ingest: Served, items: list[dict[str, Any]]) -> list[str]:
    """Memories whose files are anchored."""
    made = await world.post(f"{ingest.url}/v1/remember/batch", {"items": items})

    async def anchored() -> bool:
        late = "select count(*) from memory where enriched_version < version"
        return bool(value(world.database.admin_url, late) == 0)

    await eventually(anchored)
    return [one["id"] for one in made["items"]]


async def _applied(world: World) -> bool:
    admin = world.database.admin_url
    open_changes = value(admin, "select count(*) from git_event where processed is null")
    return bool(open_changes == 0 and value(admin, "select count(*) from outbox") == 0)


@pytest.mark.parametrize("table", ["stale_mark", "anchor"])
async def test_a_change_whose_worker_was_killed_is_applied_by_the_next(
    world: World, table: str
) -> None:
    admin = world.database.admin_url
    lock: Any = {"stale_mark": "lock table stale_mark", "anchor": "lock table anchor in share mode"}
    async with served(world, "ingest") as ingest:
        known = [{"content": text, "scope": "project/shop"} for text in KNOWN]
        memories = await _known(world, ingest, known)
        async with served(world, "staleness") as first:
            with holding(admin, lock[table]):
                told = await world.post(f"{first.url}/v1/git/changes", CHANGE)
                await eventually(lambda: blocked(admin))
                await first.kill()
        assert value(admin, "select count(*) from stale_mark") == 0
        async with served(world, "staleness") as second:
            await eventually(lambda: _applied(world), 40)
            again = await world.post(f"{second.url}/v1/git/changes", CHANGE)
            [stale] = (await world.get(f"{second.url}/v1/stale?project=shop"))["items"]
    assert (again["event"], again["duplicate"]) == (told["event"], True)
    assert (stale["memory"]["id"], stale["grade"]) == (memories[0], "gone")
    assert [one["commit"] for one in stale["evidence"]] == [SHA]
    anchored = "select path from anchor order by path"
    assert [path for (path,) in rows(admin, anchored)] == ["src/cart/new.ts", "src/cart/total.ts"]


def _path(n: int) -> str:
    return f"src/part{n % 50}/file{n:04}.ts"


async def test_a_large_change_whose_worker_was_killed_midway_is_completed_without_duplicates(
    world: World,
) -> None:
    admin = world.database.admin_url
    paths = [_path(n) for n in range(0, FILES, EVERY)]
    known = [
        {"content": f"part {n} sorts", "scope": "project/shop", "git": {"files": [path]}}
        for n, path in enumerate(paths)
    ]
    files = [{"path": _path(n), "status": "deleted"} for n in range(FILES)]
    async with served(world, "ingest") as ingest:
        memories = await _known(world, ingest, known)
        async with served(world, "staleness") as first:
            with ExitStack() as turns:
                with holding(admin, TURN):
                    await world.post(f"{first.url}/v1/git/changes", CHANGE | {"files": files})
                    await eventually(lambda: _waiting(world, 1))
                    # Behind the first part of the change, and before the second.
                    turn = asyncio.create_task(
                        asyncio.to_thread(turns.enter_context, holding(admin, TURN))
                    )
                    await eventually(lambda: _waiting(world, 2))
                await turn
                await eventually(lambda: _waiting(world, 1))
                await first.kill()
        begun = value(admin, ALL)
        assert 0 < begun < len(memories)
        async with served(world, "staleness") as second:
            await eventually(lambda: _applied(world), 60)
            stale = (await world.get(f"{second.url}/v1/stale?project=shop&limit=100"))["items"]
    assert sorted(one["memory"]["id"] for one in stale) == sorted(memories)
    assert {(one["grade"], len(one["evidence"])) for one in stale} == {("gone", 1)}
    assert value(admin, ALL) == len(memories)
    assert value(admin, "select count(*) from git_event") == 1


async def _waiting(world: World, many: int) -> bool:
    return bool(value(world.database.admin_url, WAITING) == many)

"""A dream worker killed at work is followed by another, and nothing is duplicated."""

from __future__ import annotations

from typing import Any, LiteralString

from chaos.crashes.service_processes import Served, World, served
from tests.support.stack import eventually
from tests.support.tables import blocked, holding, rows, value

SESSIONS = 4
FACTS = ("retries", "timeouts", "caches", "queues")


def _turns(n: int) -> list[dict[str, Any]]:
    """A conversation of its own with something worth keeping in it."""
    fact = FACTS[n]
    talk = [
        {"role": "user", "content": f"The {fact} misbehave in src/{fact}/main.py, please look."},
        {"role": "assistant", "content": f"I read src/{fact}/main.py and will change it."},
        {"role": "tool", "tool": "Edit", "content": f"src/{fact}/main.py\nok"},
        {
            "role": "assistant",
            "content": f"The root cause: {fact} were counted twice in src/{fact}/main.py. Fixed.",
        },
        {"role": "user", "content": f"Remember: {fact} are always logged with their {fact} id."},
        {"role": "assistant", "content": f"Understood, {fact} are always logged with their id."},
    ]
    return [{**turn, "external_id": f"{fact}-{i}"} for i, turn in enumerate(talk * 5)]


async def _told(world: World, ingest: Served) -> list[str]:
    """Sessions of one project, none of them dreamt over yet; oldest first."""
    sessions = []
    for n in range(SESSIONS):
        start = {"agent": "claude", "project": "shop"}
        session = (await world.post(f"{ingest.url}/v1/sessions/start", start))["session"]
        await world.post(f"{ingest.url}/v1/turns", {"session": session, "turns": _turns(n)})
        sessions.append(session)
    for session in sessions:
        await world.post(f"{ingest.url}/v1/sessions/{session}/end", {})
    return sessions


async def _done(world: World) -> bool:
    admin = world.database.admin_url
    undigested = value(admin, "select count(*) from turn where run is null")
    return bool(undigested == 0 and value(admin, "select count(*) from dream_job") == 0)


def _check_all_was_dreamt_once(world: World) -> None:
    admin = world.database.admin_url
    per_turn = "select count(*), count(distinct run) from turn"
    digested = value(admin, "select count(*) from turn where run is not null")
    total, _ = rows(admin, per_turn)[0]
    assert digested == total == SESSIONS * 30
    counted = "select sum(turns) from dream_run where status in ('done', 'lost', 'running')"
    assert value(admin, counted) == total
    assert rows(admin, "select pending, pending_chars from session where pending <> 0") == []
    twice = (
        "select scope, content, count(*) from memory where status = 'active'"
        " group by scope, content having count(*) > 1"
    )
    assert rows(admin, twice) == []
    of_session = (
        "select session, count(*) from memory where status = 'active' and kind = 'session'"
        " group by session"
    )
    assert [count for _, count in rows(admin, of_session)] == [1] * SESSIONS
    orphans = (
        "select count(*) from memory m where source = 'dream'"
        " and not exists (select from memory_turn t where t.memory = m.id)"
    )
    assert value(admin, orphans) == 0
    assert value(admin, "select count(*) from summary") == 1


SOON = 15.0
"""Seconds within which another dreams over the scope of a killed worker."""


async def test_a_worker_killed_while_writing_is_replaced_within_seconds(world: World) -> None:
    """Leases and times as they are in earnest; every step is walked elsewhere."""
    admin = world.database.admin_url
    async with served(world, "ingest") as ingest:
        start = {"agent": "claude", "project": "shop"}
        session = (await world.post(f"{ingest.url}/v1/sessions/start", start))["session"]
        await world.post(f"{ingest.url}/v1/turns", {"session": session, "turns": _turns(0)})
        with holding(admin, "lock table memory in exclusive mode"):
            async with served(world, "dream") as first:
                await world.post(f"{first.url}/v1/dream", {"scope": "project/shop"})
                await eventually(lambda: blocked(admin))
                runs = value(admin, "select count(*) from dream_run")
                await first.kill()
        async with served(world, "dream"):
            await eventually(lambda: _begun(world, runs), SOON)
            await eventually(lambda: _done(world), 60)
    counted = "select sum(turns) from dream_run"
    assert value(admin, counted) == value(admin, "select count(*) from turn") == 30


async def _begun(world: World, before: int) -> bool:
    return bool(value(world.database.admin_url, "select count(*) from dream_run") > before)


async def test_a_dream_finishes_although_its_workers_are_killed_one_after_another(
    world: World,
) -> None:
    """Each dies a moment after it has taken the lease, wherever that finds it."""
    admin = world.database.admin_url
    async with served(world, "ingest") as ingest:
        await _told(world, ingest)
        for deaths in range(1, 3):
            async with served(world, "dream", worker_lease=1) as worker:
                runs = "select count(*) from dream_run"

                async def taken(least: int = deaths, query: LiteralString = runs) -> bool:
                    return bool(value(admin, query) >= least) or await _done(world)

                await eventually(taken, pause=0.005)
                await worker.kill()
        async with served(world, "dream", worker_lease=1):
            await eventually(lambda: _done(world), 40)
    _check_all_was_dreamt_once(world)


async def test_two_workers_share_the_queue_and_never_work_on_the_same_scope(world: World) -> None:
    admin = world.database.admin_url
    async with served(world, "ingest") as ingest:
        await _told(world, ingest)
        async with served(world, "dream") as one, served(world, "dream") as two:
            await world.post(f"{one.url}/v1/dream", {"scope": "project/shop"})
            await world.post(f"{two.url}/v1/dream", {"scope": "project/shop"})
            await eventually(lambda: _done(world), 40)
    _check_all_was_dreamt_once(world)
    assert {s for (s,) in rows(admin, "select distinct status from dream_run")} == {"done"}

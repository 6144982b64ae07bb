"""Ingest killed between commit and publish or in enrichment loses nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import LiteralString

import aiohttp
import pytest

from chaos.crashes.service_processes import World, served
from reverie.bus.nats_bus import connect
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.proxies import at_port, port_of
from tests.support.stack import eventually
from tests.support.tables import blocked, holding, rows, run, value

CONTENT = "Sessions are kept in src/session/store.py for thirty days."
ANSWER_WAITS: LiteralString = """
create function answer_waits() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(42);
  return new;
end $$;
create trigger answer_waits before update on idempotency
  for each row execute function answer_waits()
"""

GONE: LiteralString = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'
"""


async def _enriched(world: World, memory: str) -> bool:
    query = "select enriched_version = version from memory where id = %s"
    return bool(value(world.database.admin_url, query, memory))


async def _nothing_waits(world: World) -> bool:
    return bool(value(world.database.admin_url, "select count(*) from outbox") == 0)


async def _announced(world: World, event: str) -> int:
    """How many messages of that event the stream holds."""
    async with connect(world.nats_url, "witness") as bus:
        assert await bus.wait_connected(10)
        subject, seq, count = f"memory.default.{event}", 0, 0
        while stored := await bus.read("MEMORY", seq + 1, subject):
            seq, count = stored.seq, count + 1
        return count


@pytest.mark.parametrize("publish", ["is lost", "arrives after all"])
async def test_a_writer_killed_between_commit_and_publish_loses_nothing(
    world: World, publish: str
) -> None:
    admin = world.database.admin_url
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(ChaosProxy("127.0.0.1", port_of(world.nats_url)))
        behind = replace(world, nats_url=at_port(world.nats_url, proxy.port))
        first = await stack.enter_async_context(served(behind, "ingest"))
        await eventually(lambda: _connected(first.logged("bus_connected")))
        proxy.blackhole()
        body = {"content": CONTENT, "scope": "project/shop"}
        made = await world.post(f"{first.url}/v1/remember", body)
        await first.kill()
        assert value(admin, "select count(*) from outbox") == 1
        assert await _announced(world, "remembered") == 0
        assert not await _enriched(world, made["id"])
        if publish == "is lost":
            proxy.reset_connections()
        else:
            proxy.restore()
        await stack.enter_async_context(served(world, "ingest"))
        await eventually(lambda: _enriched(world, made["id"]), 40)
        await eventually(lambda: _nothing_waits(world))
    assert await _announced(world, "remembered") == 1
    assert value(admin, "select count(*) from memory where kind <> 'file'") == 1
    assert rows(admin, "select ordinal, start from chunk where memory = %s", made["id"]) == [(0, 0)]
    assert value(admin, "select count(*) from edge where src = %s", made["id"]) == 1


async def _connected(lines: list[dict[str, object]]) -> bool:
    return bool(lines)


async def test_a_writer_killed_during_enrichment_leaves_the_memory_to_another(
    world: World,
) -> None:
    """The lock makes it wait where it writes what it derived: in one statement, which Postgres
    would finish without it, so that it goes with its machine."""
    admin = world.database.admin_url
    async with served(world, "ingest") as first:
        body = {"content": CONTENT, "scope": "project/shop"}
        with holding(admin, "lock table chunk in share mode"):
            made = await world.post(f"{first.url}/v1/remember", body)
            await eventually(lambda: blocked(admin))
            await first.kill()
            run(admin, GONE)
    assert not await _enriched(world, made["id"])
    async with served(world, "ingest"):
        await eventually(lambda: _enriched(world, made["id"]), 40)
        await eventually(lambda: _nothing_waits(world))
    assert rows(admin, "select ordinal, start from chunk where memory = %s", made["id"]) == [(0, 0)]
    vectors = "select count(*) from vec_bge_small_en_v1_5"
    assert value(admin, vectors) == 1
    assert value(admin, "select count(*) from edge where src = %s", made["id"]) == 1


async def test_a_worker_killed_in_a_batch_of_bulk_loses_nothing_and_derives_nothing_twice(
    world: World,
) -> None:
    admin, count = world.database.admin_url, 20
    items = [
        {"content": f"Lamp {n} is lit by src/lamp.py", "scope": "project/shop"}
        for n in range(count)
    ]

    async def all_enriched() -> bool:
        return bool(
            value(
                admin,
                "select count(*) from memory where enriched_version = version and kind <> 'file'",
            )
            == count
        )

    async with served(world, "ingest") as first:
        with holding(admin, "lock table chunk in share mode"):
            await world.post(f"{first.url}/v1/remember/batch", {"items": items})
            await eventually(lambda: blocked(admin))
            await first.kill()
            run(admin, GONE)
    assert not await all_enriched()
    async with served(world, "ingest"):
        await eventually(all_enriched, 90)
        await eventually(lambda: _nothing_waits(world))
    assert value(admin, "select count(*) from memory where kind <> 'file'") == count
    assert value(admin, "select count(*) from chunk") == count
    assert value(admin, "select count(*) from vec_bge_small_en_v1_5") == count
    touches = "select count(*), count(distinct src) from edge where kind = 'touches'"
    assert rows(admin, touches) == [(count, count)]
    assert await _announced(world, "bulk.remembered") == count


async def test_turns_sent_again_after_a_kill_are_stored_once(world: World) -> None:
    """The answer was never kept, so the request is carried out again once its claim ran out."""
    admin = world.database.admin_url
    turns = [
        {"role": "user", "content": "same words"},
        {"role": "user", "content": "same words"},
        {"role": "tool", "tool": "Read", "content": "lines of a file\n" * 100},
    ]
    async with served(world, "ingest") as first:
        start = {"agent": "claude", "project": "shop"}
        session = (await world.post(f"{first.url}/v1/sessions/start", start))["session"]
        body = {"session": session, "turns": turns}
        once = {"Idempotency-Key": "turns-1"}
        run(admin, ANSWER_WAITS)
        with holding(admin, "select pg_advisory_xact_lock(42)"):
            sending = asyncio.create_task(world.post(f"{first.url}/v1/turns", body, **once))
            await eventually(lambda: blocked(admin))
            assert _turns(world) == 3
            await first.kill()
            with pytest.raises(aiohttp.ClientError):
                await sending
    run(admin, "drop trigger answer_waits on idempotency")
    run(admin, "update idempotency set at = now() - interval '1 hour'")
    async with served(world, "ingest") as second:
        again = await world.post(f"{second.url}/v1/turns", body, **once)
    assert (again["accepted"], again["duplicates"]) == (0, len(turns))
    assert _turns(world) == len(turns)


def _turns(world: World) -> int:
    return int(value(world.database.admin_url, "select count(*) from turn"))

"""Writes, reads and recovery while NATS or Postgres is away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.bus.dead_letters import list_dead_letters
from reverie.bus.nats_bus import connect
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls, NatsServer
from tests.support import stack as stack_module
from tests.support.proxies import stack_behind_a_proxy
from tests.support.stack import Reply, Stack, eventually, running_stack
from tests.support.tables import rows, value

SHA = "d" * 40
CHANGE = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "subject": "drop", "committed_at": "2099-01-01T00:00:00Z"}],
    "files": [{"path": "src/cart/total.ts", "status": "deleted"}],
}
SAID = [
    {"role": "user", "content": "Remember: all money is integer cents, never floats."},
    {"role": "assistant", "content": "Understood: money amounts are integer cents, never floats."},
]


@pytest.fixture
def stack(alone: Stack) -> Stack:
    """A system of the test's own: its bus is stopped."""
    return alone


async def _a_day_of_writes(stack: Stack) -> list[str]:
    """One of every write, all of which must succeed; the ids of the memories."""
    where = {"scope": "project/shop"}
    one = await stack.post("/v1/remember", {"content": "src/cart/total.ts sums it up", **where})
    items = [{"content": "The cat sat on the warm windowsill.", **where}]
    batch = await stack.post("/v1/remember/batch", {"items": items})
    started = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "shop"})
    session = started["session"]
    told = await stack.post("/v1/turns", {"session": session, "turns": SAID})
    ended = await stack.post(f"/v1/sessions/{session}/end", {})
    await stack.post("/v1/git/changes", CHANGE)
    assert told["accepted"] == len(SAID)
    assert ended["dream"]["scope"] == "project/shop"
    return [one["id"], batch["items"][0]["id"]]


async def _all_took_effect_once(stack: Stack, nats_url: str, memories: list[str]) -> None:
    by_meaning = await stack.post("/v1/recall", {"query": "feline resting near glass"})
    found = [hit["id"] for hit in by_meaning["memories"] if "meaning" in hit["arms"]]
    assert memories[1] in found
    per_memory = "select memory, count(*) filter (where ordinal = 0) from chunk group by memory"
    assert {count for _, count in rows(stack.admin_url, per_memory)} == {1}
    assert value(stack.admin_url, "select count(*) from memory m where kind <> 'file' and"
                 " not exists (select from chunk c where c.memory = m.id)") == 0  # fmt: skip
    runs = (await stack.get("/v1/dreams"))["items"]
    assert [(run["status"], run["turns"]) for run in runs if run["turns"]] == [("done", 2)]
    async with connect(nats_url, "witness") as bus:
        assert await bus.wait_connected(30)
        assert await list_dead_letters(bus) == []


async def test_writes_continue_while_the_bus_is_down_and_the_backlog_drains_afterwards(
    stack: Stack, nats_server: NatsServer
) -> None:
    known = {"content": "src/cart/total.ts rounds half up", "scope": "project/shop"}
    rounding = await stack.post("/v1/remember", known)
    await stack.settled()
    nats_server.stop()
    memories = await _a_day_of_writes(stack)
    found = await stack.post("/v1/recall", {"query": "what sums it up?"})
    assert [hit["id"] for hit in found["memories"]][:1] == memories[:1]
    assert found["degraded"] == []
    waiting = value(stack.admin_url, "select count(*) from outbox")
    assert waiting >= 4
    async with stack.http.get(stack.urls["ingest"] + "/metrics") as answer:
        assert f"reverie_outbox_waiting {waiting:.1f}" in await answer.text()
    nats_server.start()
    await stack.settled()
    await _all_took_effect_once(stack, nats_server.url, memories)
    stale = (await stack.get("/v1/stale?project=shop"))["items"]
    evidence = {one["memory"]["id"]: len(one["evidence"]) for one in stale}
    assert evidence[rounding["id"]] == 1


async def test_a_bus_that_starts_late_is_used_when_it_comes(
    database: DatabaseUrls, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nats_server.stop()

    async def nothing(_: str) -> None:
        """Nobody made the streams either."""

    monkeypatch.setattr(stack_module, "ensure_streams", nothing)
    async with running_stack(database, nats_server.url, model_home()) as stack:
        memories = await _a_day_of_writes(stack)
        assert (await stack.post("/v1/recall", {"query": "sums"}))["memories"]
        nats_server.start()
        await stack.settled()
        await _all_took_effect_once(stack, nats_server.url, memories)


async def test_a_bus_that_is_killed_repeatedly_loses_nothing(
    stack: Stack, nats_server: NatsServer
) -> None:
    ids = []
    for n in range(3):
        body = {"content": f"note number {n} in src/notes/file{n}.py", "scope": "project/shop"}
        ids.append((await stack.post("/v1/remember", body))["id"])
        nats_server.kill()
        body = {"content": f"remark {n} while it was away", "scope": "project/shop"}
        ids.append((await stack.post("/v1/remember", body))["id"])
        nats_server.start()
    await stack.settled()
    enriched = (
        "select count(*) from memory where enriched_version = version and id = any(%s::uuid[])"
    )
    assert value(stack.admin_url, enriched, ids) == len(ids)
    firsts = "select count(*) from chunk where ordinal = 0 and memory = any(%s::uuid[])"
    assert value(stack.admin_url, firsts, ids) == len(ids)


CALLS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/remember", {"content": "x"}),
    ("POST", "/v1/remember/batch", {"items": [{"content": "x"}]}),
    ("POST", "/v1/sessions/start", {"agent": "a"}),
    ("POST", "/v1/dream", {}),
    ("POST", "/v1/git/changes", CHANGE),
    ("GET", "/v1/memories", None),
    ("GET", "/v1/context", None),
    ("GET", "/v1/stale", None),
    ("GET", "/v1/dreams", None),
    ("GET", "/v1/export", None),
]


async def _call_all(stack: Stack) -> list[Reply]:
    """The answers to every call, asked all at once; each must come in time."""
    async with asyncio.timeout(25):
        return await asyncio.gather(*(stack.call(*call) for call in CALLS))


def _is_refused(reply: Reply) -> bool:
    return (
        reply.status == 503
        and reply.headers["Content-Type"] == "application/problem+json"
        and int(reply.headers["Retry-After"]) >= 1
        and reply.body["code"] == "unavailable"
    )


async def _works(stack: Stack) -> bool:
    return all(reply.status < 300 for reply in await _call_all(stack))


async def test_without_postgres_every_call_fails_in_time_and_works_again_afterwards(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with stack_behind_a_proxy(database, nats_url, request_timeout=3.0) as (stack, proxy):
        await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
        assert await _works(stack)
        for strike in (proxy.reset_connections, proxy.blackhole):
            before = value(stack.admin_url, "select count(*) from memory")
            strike()
            replies = await _call_all(stack)
            assert [reply for reply in replies if not _is_refused(reply)] == []
            assert (await stack.call("GET", "/health")).status == 200
            ready = await stack.call("GET", "/ready")
            assert (ready.status, ready.body["checks"]["postgres"]["ok"]) == (503, False)
            assert value(stack.admin_url, "select count(*) from memory") == before
            proxy.restore()
            await eventually(lambda: _works(stack), 40)


async def test_recall_answers_and_names_what_is_missing_when_postgres_hangs(
    database: DatabaseUrls, nats_url: str
) -> None:
    opened = stack_behind_a_proxy(database, nats_url, key_cache_ttl=60, recall_timeout=4)
    async with opened as (stack, proxy):
        kept = await stack.post("/v1/remember", {"content": "the otter guards the river"})
        await stack.settled()
        question = {"query": "otter river"}

        async def is_whole() -> bool:
            found = await stack.post("/v1/recall", question)
            return not found["degraded"] and bool(found["memories"][0]["id"] == kept["id"])

        assert (await stack.post("/v1/recall", question))["search_mode"] == "hybrid"
        for strike in (proxy.reset_connections, proxy.blackhole, lambda: proxy.delay(2)):
            strike()
            async with asyncio.timeout(25):
                found = await stack.post("/v1/recall", question)
            assert {"words", "meaning"} <= set(found["degraded"])
            assert (found["memories"], found["search_mode"]) == ([], "none")
            proxy.restore()
            await eventually(is_whole, 40)

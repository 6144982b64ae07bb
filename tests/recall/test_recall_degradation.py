"""Recall with odd questions, a slow database and too many requests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.proxies import port_of, stack_behind_a_proxy
from tests.support.stack import Reply, Stack, eventually, running_stack
from tests.support.tables import run

OPERATORS = "!!! & | ! <-> :* 'quoted''s' a&b|!c <3> (((x) \\ \" :A ::text $1 %s -- ; drop table"

PATIENT = {"key_cache_ttl": 600, "recall_timeout": 4}


async def test_unusual_questions_are_answered_or_refused_by_name(stack: Stack) -> None:
    body = {"content": "the walrus queue holds orders", "scope": "global"}
    memory = (await stack.post("/v1/remember", body))["id"]
    answered = (
        "?!.,;:()[]{}<>@#$%^&*-=+~`'\"/\\|",
        "… — “ ” « » ¿ ¡ 。、！？",
        "🦭🦭🦭 👩‍👩‍👧‍👦 🏳️‍🌈",
        OPERATORS,
        "a" * 65_536,
        "? " * 32_000,
        "(" * 30_000,
        'say "' * 10_000,
        "a/" * 30_000,
        "数据库" * 7_000,
    )
    for question in answered:
        asked = {"query": question, "include": ["turns", "archived"]}
        reply = await stack.call("POST", "/v1/recall", asked)
        assert reply.status == 200, (question[:40], reply.body)
        assert reply.body["degraded"] == [], question[:40]
    for question in (f"walrus {OPERATORS}", "🦭 walrus 🦭", "walrus " * 9_000):
        found = await stack.post("/v1/recall", {"query": question})
        assert memory in [hit["id"] for hit in found["memories"]], question[:40]
    refused = {"walrus\x00queue": 422, "\x00": 422, "a" * 65_537: 413, "\ud800": 422, " \n": 422}
    refused["\u200b\u200d\u202e\ufeff"] = 422
    for question, status in refused.items():
        reply = await stack.call("POST", "/v1/recall", {"query": question})
        assert (reply.status, reply.body["field"]) == (status, "query"), question[:40]


async def test_an_empty_list_of_scopes_or_kinds_is_refused_and_never_finds_nothing_silently(
    stack: Stack,
) -> None:
    for field in ("scopes", "kinds", "tiers", "tags", "files"):
        reply = await stack.call("POST", "/v1/recall", {"query": "walrus", field: []})
        assert (reply.status, reply.body["field"]) == (422, field)
        tool = {"name": "recall", "arguments": {"query": "walrus", field: []}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
        if field in {"scopes", "kinds"}:
            told = await stack.call("POST", "/mcp", message)
            assert told.body["result"]["isError"], told
            assert field in told.body["result"]["content"][0]["text"]


async def test_a_question_of_names_returns_their_holders_first(stack: Stack) -> None:
    words = ["amber", "basil", "cedar", "delta", "ember", "fern", "garnet"]
    texts = {
        f"mkboltx1x{n}": " ".join([f"mkboltx1x{n}", *words[n % 7 :], *words[: n % 7]])
        for n in range(36)
    }
    doubted = {"mkboltx1x3", "mkboltx1x30"}
    items = [
        {"content": text, "confidence": 0.05 if name in doubted else 1.0, "pinned": n % 2 == 0}
        for n, (name, text) in enumerate(texts.items())
    ]
    told = (await stack.post("/v1/remember/batch", {"items": items}))["items"]
    ids = dict(zip(texts, (one["id"] for one in told), strict=True))
    await stack.settled()
    for name in (*doubted, "mkboltx1x4"):
        for question in (name, f"where do we have `{name}`?"):
            found = (await stack.post("/v1/recall", {"query": question, "limit": 5}))["memories"]
            assert found[0]["id"] == ids[name], question
            assert len(found) == 5, question


async def test_a_recall_answers_within_its_deadline_with_what_it_has(
    database: DatabaseUrls, nats_url: str
) -> None:
    asked = {"query": "which queue holds walrus orders", "depth": 5}
    async with stack_behind_a_proxy(database, nats_url, **PATIENT) as behind:
        stack, proxy = behind
        memory = (await stack.post("/v1/remember", {"content": "the walrus queue"}))["id"]
        await stack.settled()
        crowd = [stack.post("/v1/recall", asked) for _ in range(6)]
        for answer in await asyncio.gather(*crowd):
            assert [hit["id"] for hit in answer["memories"]] == [memory]
        proxy.delay(0.08)
        slow = await stack.post("/v1/recall", asked)
        assert [hit["id"] for hit in slow["memories"]] == [memory]
        proxy.delay(1.5)
        late_answer = await stack.post("/v1/recall", asked)
        assert {"words", "meaning"} <= set(late_answer["degraded"])
        assert late_answer["search_mode"] == "none"
        proxy.restore()


async def test_without_the_store_an_agents_context_is_empty_and_names_what_is_missing(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with stack_behind_a_proxy(database, nats_url, **PATIENT) as behind:
        stack, proxy = behind
        await stack.post("/v1/remember", {"content": "the walrus queue", "pinned": True})
        start = {"agent": "ann", "project": "zoo"}
        begun = await stack.post("/v1/sessions/start", start)
        session = begun["session"]
        assert (await stack.get("/v1/context"))["degraded"] == []
        proxy.reset_connections()
        block = await stack.get("/v1/context")
        assert (block["markdown"], block["degraded"]) == ("", ["store"])
        block = await stack.get(f"/v1/context?session={session}")
        assert (block["markdown"], block["degraded"]) == ("", ["session", "store"])
        turn = {"session": session, "query": "walrus"}
        given = await stack.post("/v1/preflow", turn)
        assert (given["markdown"], given["turn"], given["degraded"]) == ("", 0, ["session"])
        found = await stack.post("/v1/recall", turn)
        assert found["memories"] == []
        assert {"words", "session"} <= set(found["degraded"])
        then = await stack.post("/v1/recall", {**turn, "as_of": "2026-01-01T00:00:00Z"})
        assert (then["memories"], then["search_mode"]) == ([], "none")
        # So are those that name themselves: what they were told once cannot be looked up either.
        named = {"Idempotency-Key": "turn 7"}
        for path in ("/v1/preflow", "/v1/recall"):
            once = await stack.call("POST", path, turn, headers=named)
            assert once.status == 200, once
            assert "session" in once.body["degraded"]
        for tool, arguments in (("recall", {"query": "walrus"}), ("context", {})):
            call = {"name": tool, "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            told = await stack.call("POST", "/mcp", message)
            text = told.body["result"]["content"][0]["text"]
            assert "Memory cannot be read now" in text
            assert "Nothing is known" not in text
        refused = await stack.call("POST", "/v1/remember", {"content": "x"}, headers=named)
        assert refused.status == 503
        proxy.restore()
        assert "walrus" in (await stack.post("/v1/preflow", turn))["markdown"]
        found = await stack.post("/v1/recall", turn)
        assert (len(found["memories"]), found["degraded"]) == (1, [])


async def test_many_recalls_do_not_starve_remember_and_excess_ones_are_told_to_wait(
    database: DatabaseUrls, nats_url: str
) -> None:
    limits = {"max_concurrent_requests": 2, "request_queue": 20, "recall_timeout": 30}
    async with running_stack(database, nats_url, model_home(), **limits) as stack:
        for n in range(5):
            await stack.post("/v1/remember", {"content": f"order {n} went to the walrus queue"})

        async def recalled() -> Reply:
            asked = {"query": "which orders went to the walrus queue"}
            return await stack.call("POST", "/v1/recall", asked)

        async def remembered(n: int) -> str:
            made = await stack.post("/v1/remember", {"content": f"a note beside the crowd {n}"})
            return str(made["status"])

        crowd = [asyncio.create_task(recalled()) for _ in range(50)]
        written = await asyncio.gather(*(remembered(n) for n in range(10)))
        assert written == ["created"] * 10
        replies = await asyncio.gather(*crowd)
        assert {reply.status for reply in replies} == {200, 503}
        served = [reply for reply in replies if reply.status == 200]
        assert len(served) >= 22
        assert all(reply.body["memories"] and not reply.body["degraded"] for reply in served)
        refused = next(reply for reply in replies if reply.status == 503)
        assert refused.headers["Retry-After"] in {"1", "2"}
        assert "2 requests are under way and 20 wait" in refused.body["detail"]
        assert (await recalled()).status == 200


async def test_exports_that_nobody_reads_leave_room_for_recalls(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), pool_max=4) as stack:
        items = [{"content": f"order {n} went to the walrus queue"} for n in range(100)]
        await stack.post("/v1/remember/batch", {"items": items})
        longer = "update memory set summary = repeat('all of it ', 10000)"
        await asyncio.to_thread(run, stack.admin_url, longer)
        async with AsyncExitStack() as clients:
            told = [await clients.enter_async_context(_idle_export(stack)) for _ in range(4)]
            assert sorted(told) == [200, 200, 503, 503]
            found = await stack.post("/v1/recall", {"query": "walrus queue"})
            assert (len(found["memories"]), found["degraded"]) == (10, [])
        # Who leaves gives its place back.
        await eventually(lambda: _exported(stack))


@asynccontextmanager
async def _idle_export(stack: Stack) -> AsyncIterator[int]:
    """The status of an export of which nothing more is read."""
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", port_of(stack.url)))
    reader, writer = await asyncio.open_connection(sock=small, limit=1024)
    head = f"GET /v1/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {stack.key}"
    writer.write(f"{head}\r\n\r\n".encode())
    try:
        yield int((await reader.readline()).split()[1])
    finally:
        writer.transport.abort()


async def _exported(stack: Stack) -> bool:
    headers = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=headers) as answer:
        return answer.status == 200 and b"walrus" in await answer.read()

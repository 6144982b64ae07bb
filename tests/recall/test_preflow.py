"""The preflow call: the active memory set of a session, and what of it is new."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

from reverie.domain.access.principals import KeyRole
from reverie.domain.text.memory_fence import CLOSE_TAG, OMITTED_PLACEHOLDER, OPEN_TAG
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall import app as recall
from tests.support.stack import Stack, eventually
from tests.support.tables import holding, rows, run, value


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": "project/shop", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _session(stack: Stack, agent: str = "claude", **fields: str) -> str:
    """A session whose agent was not shown the context block."""
    start = {"agent": agent, "project": "shop", **fields}
    return str((await stack.post("/v1/sessions/start", start))["session"])


async def _preflow(stack: Stack, session: str, query: str, **fields: Any) -> Any:
    return await stack.post("/v1/preflow", {"session": session, "query": query, **fields})


def _new(answer: Any) -> set[str]:
    return {one["id"] for one in answer["items"] if one["id"]}


def _summarise(stack: Stack, scope: str, text: str) -> None:
    run(
        stack.admin_url,
        "insert into summary (tenant, scope, content, tokens) values (%s, %s, %s, 20)",
        stack.number(),
        scope,
        text,
    )


async def test_a_turn_receives_what_is_near_the_best_hit_and_not_whatever_fits(
    stack: Stack,
) -> None:
    near = await _remember(stack, "Payments were retried without an idempotency key", kind="bug")
    far = await _remember(stack, "Grafana boards have green titles", kind="reference")
    await stack.settled()
    found = await _preflow(stack, await _session(stack), "Why were payments retried?")
    assert near in _new(found)
    assert far not in found["active"]
    session = await _session(stack)
    assert far in (await _preflow(stack, session, "Which boards does Grafana have?"))["active"]


async def test_a_session_receives_its_set_once_and_again_on_request_or_after_compaction(
    stack: Stack,
) -> None:
    pinned = await _remember(stack, "All prices are integers of cents", pinned=True)
    asked = await _remember(stack, "The importer hung on a lock of the queue", kind="bug")
    gone = await _remember(stack, "Carts are kept in Redis", kind="reference")
    _summarise(
        stack,
        "project/shop",
        "## Decisions\n- Orders are never deleted\n- Carts are kept in Redis\n\n"
        "## How to\n- All prices are integers of cents",
    )
    private = {"content": "bob's importer lock", "scope": "agent/bob", "kind": "bug"}
    foreign = (await stack.post("/v1/remember", private))["id"]
    await stack.call("DELETE", f"/v1/memories/{gone}")
    session = await _session(stack)

    first = await _preflow(stack, session, "Why did the importer hang on the queue lock?")
    assert _new(first) == set(first["active"]) == {pinned, asked}
    assert foreign not in first["active"]
    assert (first["intent"], first["turn"], first["degraded"]) == ("why", 1, [])
    assert {"importer", "queue", "lock"} <= set(first["keywords"])
    assert "project/shop" in first["scopes"]
    block = first["markdown"]
    assert block.startswith(f"{OPEN_TAG}\n")
    assert block.endswith(f"\n{CLOSE_TAG}")
    assert "### Memory\n" in block
    assert "- [project/shop summary] Decisions: Orders are never deleted" in block
    assert "Redis" not in block
    context = await stack.get(f"/v1/context?session={session}")
    assert "Orders are never deleted" in context["summaries"]["project/shop"]
    assert "Redis" not in context["summaries"]["project/shop"]
    assert block.count("integers of cents") == 1
    assert f"[project/shop {asked[-8:]}] The importer hung" in block
    by_id = {one["id"]: one for one in first["items"]}
    assert (by_id[pinned]["layer"], by_id[pinned]["reason"]) == ("recent", "pinned")
    assert by_id[asked]["layer"] == "on_demand"
    assert by_id[asked]["reason"].startswith("found by")
    assert by_id[None]["layer"] == "resident"
    layers = first["layers"]
    assert all(one["tokens"] <= one["budget"] for one in layers.values())
    assert sum(one["tokens"] for one in layers.values()) <= sum((300, 400, 800))

    second = await _preflow(stack, session, "Why did the importer hang on the queue lock?")
    assert (second["markdown"], second["tokens"], second["items"]) == ("", 0, [])
    assert (set(second["active"]), second["turn"]) == ({asked}, 2)
    again = await _preflow(stack, session, "the importer lock", include_seen=True)
    assert _new(again) == {pinned, asked}
    compacted = await _preflow(stack, session, "the importer lock", compacted=True)
    assert _new(compacted) == {pinned, asked}
    assert (await _preflow(stack, session, "the importer lock"))["items"] == []

    edit = {"content": "The importer hung on a lock of the queue: fixed by a timeout"}
    await stack.call("PATCH", f"/v1/memories/{asked}", edit)
    assert _new(await _preflow(stack, session, "the importer lock")) == {asked}
    small = await _preflow(
        stack, session, "the importer lock", include_seen=True, budget_tokens=120
    )
    assert 0 < small["tokens"] <= 120

    other = await _session(stack, agent="bob")
    theirs = await _preflow(stack, other, "importer lock")
    assert {pinned, asked, foreign} == _new(theirs)
    used = "select count(*) from memory_use_session where used_by = %s"
    await eventually(lambda: _one(stack, used, f"session {session}"))


async def _one(stack: Stack, query: Any, *args: object) -> bool:
    return bool(value(stack.admin_url, query, *args))


LESSONS = (
    "The importer must see the whole archive before it writes",
    "An importer that is cut off leaves its lock behind",
    "Give the importer small pages, for large ones run out of memory",
    "Dates without an offset confuse the importer",
    "Let the importer go on after a line that it refuses",
    "Never run the importer beside a migration",
)


async def test_a_set_is_shared_by_gateways_and_deleted_with_its_session(
    alone: Stack, database: DatabaseUrls
) -> None:
    made = {await _remember(alone, text, kind="lesson") for text in LESSONS}
    session = await _session(alone)
    query = {"session": session, "query": "lessons of the importer"}
    await alone.settled()
    both = await asyncio.gather(*(alone.post("/v1/preflow", query) for _ in range(4)))
    given = [one["id"] for answer in both for one in answer["items"] if one["id"]]
    assert sorted(given) == sorted(made)
    assert {answer["turn"] for answer in both} == {1, 2, 3, 4}

    settings = Settings(
        home=model_home(), database_url=database.service_url, key_cache_ttl=0, grpc_enabled=False
    )
    async with recall.open_service(settings) as service, start_service(service, settings) as url:
        await eventually(lambda: _ready(alone, url))
        assert (await alone.post(url + "/v1/preflow", query))["items"] == []
        more = await _remember(
            alone, "Watch how much room the importer takes on disk", kind="lesson"
        )
        assert _new(await alone.post(url + "/v1/preflow", query)) == {more}
    assert (await alone.post("/v1/preflow", query))["items"] == []

    ended = await alone.call("POST", f"/v1/sessions/{session}/end", {})
    assert ended.status < 300
    assert (await alone.post("/v1/preflow", query))["items"] == []
    assert value(alone.admin_url, "select count(*) from active_memory_set") == 1
    await alone.call("DELETE", "/v1/admin/projects/shop")
    assert rows(alone.admin_url, "select session from active_memory_set") == []
    assert (await alone.call("POST", "/v1/preflow", query)).status == 404


async def _ready(stack: Stack, url: str) -> bool:
    async with stack.http.get(url + "/ready") as answer:
        return answer.status == 200


async def test_a_set_belongs_to_the_sessions_agent_and_its_text_is_not_stored_as_new(
    stack: Stack,
) -> None:
    checked = "Tokens are checked in src/middleware/auth.ts before anything else"
    made = await _remember(stack, checked, kind="reference")
    old = await _remember(stack, "We sort by creation date", kind="reference")
    session = await _session(stack)
    await stack.settled()
    files = ["/home/me/shop/src/middleware/auth.ts"]
    answer = await _preflow(stack, session, "what about sorting", files=files)
    whys = {one["id"]: one["reason"] for one in answer["items"]}
    assert whys[old].startswith("found by ")
    assert "words" in whys[old]
    assert whys[made] == "touches src/middleware/auth.ts"
    for said in (answer["markdown"], f"{answer['markdown']}\nPlease sort them"):
        turn = {"role": "user", "content": said}
        await stack.post("/v1/turns", {"session": session, "turns": [turn]})
    turns = (await stack.get(f"/v1/sessions/{session}/turns"))["items"]
    assert turns[0]["content"] == OMITTED_PLACEHOLDER
    assert turns[1]["content"].strip() == "Please sort them"
    echo = await _preflow(stack, session, answer["markdown"], include_seen=True)
    assert (echo["keywords"], echo["layers"]["on_demand"]["items"]) == ([], 0)

    for body, field in (
        ({"session": session, "query": "  "}, "query"),
        ({"session": session}, "query"),
        ({"query": "x"}, "session"),
        ({"session": session, "query": "x", "budget_tokens": 1}, "budget_tokens"),
        ({"session": session, "query": "x", "files": [""]}, "files.0"),
    ):
        refused = await stack.call("POST", "/v1/preflow", body)
        assert (refused.status, refused.body["field"]) == (422, field)
    long = await stack.call("POST", "/v1/preflow", {"session": session, "query": "x" * 70_000})
    assert (long.status, long.body["field"]) == (413, "query")
    for strange in ("?!", "🙂", "a & !b | (c <-> d):*", "x" * 65_000):
        assert (await _preflow(stack, session, strange))["degraded"] == []
    other = stack.key_of(role=KeyRole.WRITER, agent="bob")
    for key, one in ((other, session), (stack.key, "00000000-0000-7000-8000-000000000001")):
        unknown = await stack.call("POST", "/v1/preflow", {"session": one, "query": "x"}, key)
        assert unknown.status == 404


async def test_parts_that_do_not_answer_in_time_are_named_and_the_rest_is_returned(
    alone: Stack,
) -> None:
    made = await _remember(alone, "All prices are integers of cents", pinned=True)
    session = await _session(alone)
    locks = (
        "lock table active_memory_set in access exclusive mode",
        "lock table posting_entry in access exclusive mode",
    )
    with ExitStack() as locked:
        # In a thread, so that transactions under way can end.
        await asyncio.to_thread(locked.enter_context, holding(alone.admin_url, *locks))
        answer = await _preflow(alone, session, "prices")
    assert {"set", "words"} <= set(answer["degraded"])
    assert _new(answer) == {made}
    whole = await _preflow(alone, session, "prices")
    assert (_new(whole), whole["turn"], whole["degraded"]) == ({made}, 1, [])

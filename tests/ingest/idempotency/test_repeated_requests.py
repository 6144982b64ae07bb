"""Repeated and concurrent requests take effect once; paging during writes.

Each test is a tenant of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, LiteralString

import pytest

from tests.support.stack import Reply, Stack, eventually
from tests.support.tables import counts, value

SHA = "9" * 40
CHANGE = {
    "project": "shop",
    "branch": "main",
    "after": SHA,
    "commits": [{"sha": SHA, "committed_at": "2026-01-01T00:00:00Z"}],
    "files": [{"path": "src/a.py", "status": "modified"}],
}
TURNS = [{"role": "user", "content": "carrots"}, {"role": "user", "content": "carrots"}]
ROUTES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "remember": ({"content": "one thing", "scope": "project/shop"}, {"memory": 1}),
    "turns": ({"turns": TURNS}, {"turn": 2, "turn_posting_entry": 2}),
    "sessions/start": ({"agent": "claude", "project": "shop"}, {"session": 1}),
    "dream": ({"scope": "project/shop"}, {}),
}
"""What is sent to routes, and the rows that it adds to tables."""


async def _session(stack: Stack, **more: str) -> str:
    start = {"agent": "claude", "project": "shop", **more}
    return str((await stack.post("/v1/sessions/start", start))["session"])


async def _body(stack: Stack, route: str) -> dict[str, Any]:
    body, _ = ROUTES[route]
    return {**body, "session": await _session(stack)} if route == "turns" else body


async def _send(stack: Stack, route: str, body: Any, key: str = "once") -> Reply:
    return await stack.call("POST", f"/v1/{route}", body, headers={"Idempotency-Key": key})


DERIVED = {
    *("chunk", "vec_bge_small_en_v1_5", "sparse_splade_tiny"),
    *("outbox", "dream_job", "dream_run", "summary"),
}
"""What the slow path may still be writing."""


def _stored(stack: Stack) -> dict[str, int]:
    held = counts(stack.admin_url, stack.number())
    return {table: many for table, many in held.items() if table not in DERIVED}


def _count(stack: Stack, of: LiteralString) -> int:
    """How many rows of the tenant there are of what stands behind `from`."""
    return int(value(stack.admin_url, f"select count(*) from {of}", stack.number()))


@pytest.mark.parametrize("route", ROUTES)
async def test_ten_concurrent_requests_act_once(stack: Stack, route: str) -> None:
    body = await _body(stack, route)
    before = _stored(stack)
    replies = await asyncio.gather(*(_send(stack, route, body) for _ in range(10)))
    stored = _stored(stack)
    good = [reply for reply in replies if reply.status < 300]
    assert {reply.status for reply in replies} <= {good[0].status, 409}
    assert all("Retry-After" in reply.headers for reply in replies if reply.status == 409)
    assert all(reply.body == good[0].body for reply in good)
    assert len([reply for reply in good if "Idempotent-Replayed" not in reply.headers]) == 1
    again = await _send(stack, route, body)
    assert again.body == good[0].body
    assert _stored(stack) == stored
    added = {k: stored[k] - before[k] for k in stored if stored[k] != before[k]}
    assert added.pop("idempotency") == 1
    _, expected = ROUTES[route]
    assert added.items() >= expected.items()
    assert _count(stack, "memory where tenant = %s and confidence > 0.81") == 0


async def test_a_key_belongs_to_one_route_and_one_holder(stack: Stack) -> None:
    body = {"content": "one thing"}
    await _send(stack, "remember", body)
    elsewhere = await _send(stack, "remember/batch", {"items": [body]})
    assert elsewhere.body["code"] == "idempotency_mismatch"
    headers = {"Idempotency-Key": "once"}
    other = await stack.call("POST", "/v1/remember", body, stack.key_of(), headers=headers)
    assert other.status == 201
    assert "Idempotent-Replayed" not in other.headers


async def test_an_error_is_not_stored_under_its_key(stack: Stack) -> None:
    body = {"session": "00000000-0000-7000-8000-000000000000", "turns": TURNS}
    assert (await _send(stack, "turns", body)).status == 404
    assert (await _send(stack, "turns", {**body, "session": await _session(stack)})).status == 200


async def test_turns_without_external_ids_are_stored_as_often_as_they_are_sent(
    stack: Stack,
) -> None:
    """What stands in for a missing id must not swallow what was really said twice."""
    body = {"session": await _session(stack), "turns": TURNS}
    for key in ("one", "two"):
        done = await _send(stack, "turns", body, key)
        assert (done.body["accepted"], done.body["duplicates"]) == (2, 0)
    plain = await stack.post("/v1/turns", body)
    assert (plain["accepted"], plain["duplicates"]) == (2, 0)
    listed = (await stack.get(f"/v1/sessions/{body['session']}/turns"))["items"]
    assert [turn["ordinal"] for turn in listed] == list(range(6))


async def test_a_session_restarted_after_another_scope_was_deleted_is_one_session(
    stack: Stack,
) -> None:
    await stack.post("/v1/remember", {"content": "paint it red", "scope": "project/barn"})
    route, body = "sessions/start", await _body(stack, "sessions/start")
    first = await _send(stack, route, body)
    gone = await stack.call("DELETE", "/v1/admin/scopes?scope=project/barn")
    again = await _send(stack, route, body)
    assert gone.body["rows"]["memory"] == 1
    assert again.body["session"] == first.body["session"]
    assert _count(stack, "session where tenant = %s") == 1


async def test_a_change_announced_ten_times_concurrently_is_one_change(stack: Stack) -> None:
    await _session(stack)
    told = await asyncio.gather(*(stack.post("/v1/git/changes", CHANGE) for _ in range(10)))
    assert len({one["event"] for one in told}) == 1
    assert Counter(one["duplicate"] for one in told) == {True: 9, False: 1}


async def test_pages_contain_every_memory_once_while_others_are_written(stack: Stack) -> None:
    items = [{"content": f"memory number {n}"} for n in range(50)]
    await stack.post("/v1/remember/batch", {"items": items})
    seen: list[str] = []
    sizes: list[int] = []
    cursor = ""
    while True:
        page = await stack.get(f"/v1/memories?limit=8{cursor}")
        await stack.post("/v1/remember", {"content": f"written after page {len(sizes)}"})
        seen += [memory["content"] for memory in page["items"]]
        sizes.append(len(page["items"]))
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert sizes == [8] * 6 + [2]
    assert seen == [f"memory number {n}" for n in reversed(range(50))]


async def test_turns_are_paged_in_order_while_more_are_appended(stack: Stack) -> None:
    session = await _session(stack)
    said = [{"role": "user", "content": f"turn {n}"} for n in range(25)]
    await stack.post("/v1/turns", {"session": session, "turns": said})
    seen: list[str] = []
    path: str | None = f"/v1/sessions/{session}/turns?limit=10"
    while path is not None:
        page = await stack.get(path)
        seen += [turn["content"] for turn in page["items"]]
        if len(seen) == 10:
            await stack.post("/v1/turns", {"session": session, "turns": said[:1]})
        following = page["next"]
        path = following and f"/v1/sessions/{session}/turns?limit=10&cursor={following}"
    assert seen == [*(turn["content"] for turn in said), "turn 0"]


async def test_an_ended_session_may_be_ended_again_and_is_dreamt_once(stack: Stack) -> None:
    session = await _session(stack)
    await stack.post("/v1/turns", {"session": session, "turns": TURNS})
    ends = [stack.post(f"/v1/sessions/{session}/end", {}) for _ in range(10)]
    ended = await asyncio.gather(*ends)
    assert {one["session"] for one in ended} == {session}

    async def rested() -> bool:
        return _count(stack, "dream_job where tenant = %s") == 0

    await eventually(rested)
    turns = "select coalesce(sum(turns), 0) from dream_run where tenant = %s"
    assert value(stack.admin_url, turns, stack.number()) == len(TURNS)
    last = await stack.post(f"/v1/sessions/{session}/end", {})
    assert last == {"session": session, "dream": None}

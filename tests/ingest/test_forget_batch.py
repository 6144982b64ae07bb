"""Forgetting many memories by one call: which ones, and whose."""

from __future__ import annotations

from typing import Any

from reverie.contracts.memories.edits import MAX_FORGOTTEN
from tests.support.stack import Stack

SCOPE = "project/quay"
FORGET = "/v1/memories/forget"


async def _store(stack: Stack, items: list[dict[str, Any]]) -> list[str]:
    body = {"items": [{"scope": SCOPE, "kind": "lesson", **item} for item in items]}
    return [item["id"] for item in (await stack.post("/v1/remember/batch", body))["items"]]


async def _left(stack: Stack, scope: str = SCOPE) -> set[str]:
    status = "status=active&status=superseded&status=archived"
    page = await stack.get(f"/v1/memories?scope={scope}&{status}&limit=200")
    return {memory["id"] for memory in page["items"]}


async def test_the_memories_that_pass_all_filters_are_forgotten(stack: Stack) -> None:
    tar, rope, sail, other = await _store(
        stack,
        [
            {"content": "Tar is in the shed.", "tags": ["draft"], "key": "tar"},
            {"content": "Rope hangs on a hook.", "tags": ["draft"], "key": "rope"},
            {"content": "The sail is white."},
            {"content": "Gulls nest elsewhere.", "tags": ["draft"], "scope": "project/other"},
        ],
    )
    body = {"scope": SCOPE, "tag": "draft", "keys": ["tar", "unknown"]}
    first = await stack.post(FORGET, body)
    assert (first["forgotten"], first["more"]) == (1, False)
    assert first["restorable_until"]
    assert await _left(stack) == {rope, sail}
    assert (await stack.post(FORGET, body))["forgotten"] == 0
    assert (await stack.post(FORGET, {"ids": [rope[-8:], tar]}))["forgotten"] == 1
    assert (await stack.post(f"/v1/memories/{rope}/restore", {}))["status"] == "active"
    assert (await stack.post(FORGET, {"scope": SCOPE}))["forgotten"] == 2
    assert await _left(stack, "project/other") == {other}


async def test_superseded_memories_are_forgotten_unless_only_active_ones_are_meant(
    stack: Stack,
) -> None:
    old = {"content": "The crane lifts two tons.", "key": "crane"}
    new = {**old, "content": "The crane lifts five tons.", "supersede_reason": "rebuilt"}
    before, _ = [(await _store(stack, [item]))[0] for item in (old, new)]
    active = {"scope": SCOPE, "status": ["active"]}
    assert (await stack.post(FORGET, active))["forgotten"] == 1
    assert await _left(stack) == {before}
    assert (await stack.post(FORGET, {"scope": SCOPE}))["forgotten"] == 1
    assert await _left(stack) == set()


async def test_a_call_forgets_a_part_and_says_that_there_is_more(stack: Stack) -> None:
    items = [{"content": f"Berth {n} is free."} for n in range(MAX_FORGOTTEN + 3)]
    await _store(stack, items)
    answers = [await stack.post(FORGET, {"scope": SCOPE}) for _ in range(2)]
    assert [(one["forgotten"], one["more"]) for one in answers] == [
        (MAX_FORGOTTEN, True),
        (3, False),
    ]


async def test_what_a_key_may_not_write_stays_with_all_others_of_the_call(stack: Stack) -> None:
    mine, theirs = await _store(
        stack, [{"content": "My boat is blue."}, {"content": "Theirs is red.", "scope": "global"}]
    )
    key = stack.key_of(reads=["*"], writes=[SCOPE])
    bodies = [{"ids": [mine, theirs]}, {"scope": "global"}, {"tag": "draft"}]
    replies = [await stack.call("POST", FORGET, body, key=key) for body in bodies]
    assert [reply.status for reply in replies] == [403, 403, 422]
    assert await _left(stack) == {mine}
    assert await _left(stack, "global") == {theirs}

"""Recall walks from the files and entities that a question names to what touches them."""

from __future__ import annotations

from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.stack import Stack

ROUNDING = "Half cents are rounded to even, because the auditors asked for it."


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"scope": "project/shop", "kind": "decision", "content": content, **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _recall(stack: Stack, query: str, **fields: Any) -> Any:
    body = {"query": query, **fields}
    return await stack.post("/v1/recall", body)


async def test_a_question_about_a_file_finds_what_touches_it_without_naming_it(
    stack: Stack,
) -> None:
    git = {"files": ["src/cart/price.py"]}
    # Of a topic of the project: what shares a file is related within a scope alone.
    rounding = await _remember(stack, ROUNDING, git=git, scope="project/shop/topic/money")
    for n in range(10):
        await _remember(stack, f"The price list number {n} is printed in colour {n * n}.")
    await stack.settled()
    answer = await _recall(stack, "What must I know before I change src/cart/price.py?", limit=10)
    assert rounding in {hit["id"] for hit in answer["memories"]}
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    [walked] = [one for one in trace["candidates"] if one["id"] == rounding]
    assert [hop["type"] for hop in walked["hops"]] == ["touches"]
    flat = await _recall(stack, "What must I know of src/cart/price.py?", limit=10, depth=0)
    assert rounding not in {hit["id"] for hit in flat["memories"]}


async def test_a_node_that_too_many_memories_touch_leads_nowhere(stack: Stack) -> None:
    items = [
        {
            "content": f"Step {n} of the build takes {n * 7} seconds on runner {n * 13}.",
            "scope": "project/shop",
            "git": {"files": ["Makefile.build"]},
        }
        for n in range(52)
    ]
    await stack.post("/v1/remember/batch", {"items": items})
    await _remember(stack, ROUNDING)
    await stack.settled()
    answer = await _recall(stack, "zebra Makefile.build", limit=50)
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    assert not any(hop["type"] == "touches" for one in trace["candidates"] for hop in one["hops"])


async def test_a_walk_through_a_file_shows_nothing_that_the_key_may_not_read(
    stack: Stack,
) -> None:
    git = {"files": ["src/cart/price.py"]}
    await _remember(stack, ROUNDING, git=git, scope="project/shop/topic/money")
    await _remember(stack, "Prices are integers.", git=git)
    await stack.settled()
    key = stack.key_of(reads=("project/shop",), role=KeyRole.READER)
    body = {"query": "What about src/cart/price.py?"}
    told = await stack.post("/v1/recall", body, key=key)
    assert {hit["scope"] for hit in told["memories"]} == {"project/shop"}


async def test_a_question_of_what_favours_the_specification(stack: Stack) -> None:
    ids = {
        kind: await _remember(stack, f"The retry queue holds {n} messages a shard.", kind=kind)
        for n, kind in enumerate(("context", "spec"), start=40)
    }
    await stack.settled()
    answer = await _recall(stack, "What does the retry queue hold?")
    assert answer["intent"] == "what"
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    factors = {one["id"]: one["factors"] for one in trace["candidates"]}
    assert factors[ids["spec"]]["kind"] > 1
    assert "kind" not in factors[ids["context"]]

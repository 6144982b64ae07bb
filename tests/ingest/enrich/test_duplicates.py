"""Similar memories are merged or marked as contradicting, through the gateway."""

from __future__ import annotations

from typing import Any

from tests.support.stack import Stack, eventually

SHOP = "project/shop"


async def _made(stack: Stack, content: str, **fields: Any) -> str:
    """The id of a decision."""
    body = {"content": content, "scope": SHOP, "kind": "decision", **fields}
    made = await stack.post("/v1/remember", body)
    return str(made["id"])


async def test_a_later_decision_contradicts_the_earlier_one_which_becomes_doubtful(
    stack: Stack,
) -> None:
    old = await _made(stack, "Use jsonwebtoken for tokens")
    before = await stack.get(f"/v1/memories/{old}")
    new = await _made(stack, "Use jose instead of jsonwebtoken")

    async def linked() -> Any:
        found = await stack.get(f"/v1/memories/{old}")
        return [n for n in found["neighbours"] if n["type"] == "contradicts"]

    await eventually(linked)
    after = await stack.get(f"/v1/memories/{old}")
    [edge] = [n for n in after["neighbours"] if n["type"] == "contradicts"]
    assert (edge["id"], edge["direction"]) == (new, "in")
    assert after["confidence"] < before["confidence"] <= 1
    assert after["status"] == "active"


async def test_in_a_series_of_values_each_contradicts_only_the_previous_one(stack: Stack) -> None:
    ids = [
        await _made(stack, f"The connection pool of the gateway holds {many} connections")
        for many in (8, 12, 20, 32, 64)
    ]

    async def linked() -> Any:
        found = [await stack.get(f"/v1/memories/{one}") for one in ids]
        near = [n for one in found for n in one["neighbours"] if n["type"] == "contradicts"]
        told = {
            (n["id"], one["id"])
            for one in found
            for n in one["neighbours"]
            if n["type"] == "contradicts" and n["direction"] == "in"
        }
        return (found, near, told) if len(told) >= 4 else None

    found, near, told = await eventually(linked)
    assert told == set(zip(ids[1:], ids, strict=False))
    assert len(near) == 2 * len(told)
    assert len({one["confidence"] for one in found[:-1]}) == 1
    assert found[0]["confidence"] < found[-1]["confidence"]


async def test_the_id_of_a_merged_memory_resolves_to_the_surviving_one(stack: Stack) -> None:
    first = "The upload handler lives in src/upload/handler.ts"
    one = await _made(stack, first, tags=["upload"], scope=SHOP)
    elsewhere = await _made(stack, first + ".", scope="project/other")
    fuller = first + ", and it delegates to src/upload/store.ts"
    two = await _made(stack, fuller, tags=["s3"])

    async def merged() -> Any:
        reply = await stack.call("GET", f"/v1/memories/{two}")
        return reply.body.get("merged_from") and reply

    reply = await eventually(merged)
    assert (reply.status, reply.body["id"], reply.body["merged_from"]) == (200, one, two)
    assert reply.headers["Content-Location"] == f"/v1/memories/{one}"
    assert reply.body["content"] == fuller
    assert reply.body["tags"] == ["s3", "upload"]
    assert reply.body["confidence"] > 0.8
    assert [source["id"] for source in reply.body["metadata"]["merged"]] == [two]
    short = await stack.get(f"/v1/memories/{two[-8:]}")
    assert short["id"] == one
    listed = await stack.get("/v1/memories")
    assert {m["id"] for m in listed["items"]} == {one, elsewhere}

    found = await stack.post("/v1/recall", {"query": "delegates to src/upload/store.ts"})
    assert found["memories"][0]["id"] == one
    assert two not in {m["id"] for m in found["memories"]}
    linked = {"content": "S3 costs too much", "edges": [{"to": two, "type": "relates_to"}]}
    third = await stack.post("/v1/remember", linked)
    near = (await stack.get(f"/v1/memories/{third['id']}"))["neighbours"]
    assert [n["id"] for n in near if n["type"] == "relates_to"] == [one]


async def test_each_memory_of_a_batch_is_compared_with_those_before_it(
    stack: Stack,
) -> None:
    """Models read several at a time; what says alike is found as if they came one by one."""
    parts = ("upload", "invoice", "mailer", "report", "search", "login")
    short = [f"The {part} handler lives in src/{part}/handler.ts" for part in parts]
    # The longer ones are read last, and come right after the ones that they say again.
    told = [
        text
        for part, one in zip(parts, short, strict=True)
        for text in (one, f"{one}, and it delegates to src/{part}/store.ts")
    ]
    items = [{"content": text, "scope": SHOP, "kind": "decision"} for text in told]
    made = await stack.post("/v1/remember/batch", {"items": items})
    ids = [item["id"] for item in made["items"]]

    async def merged() -> bool:
        answers = [await stack.call("GET", f"/v1/memories/{one}") for one in ids[1::2]]
        return [answer.body["id"] for answer in answers] == ids[::2]

    await eventually(merged)
    listed = await stack.get("/v1/memories")
    assert sorted(one["content"] for one in listed["items"]) == sorted(told[1::2])

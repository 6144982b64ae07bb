"""Similar memories are merged or marked as contradicting, through the gateway."""

from __future__ import annotations

from typing import Any

from tests.support.stack import Stack, eventually

SHOP = "project/shop"


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    """The id of a decision."""
    body = {"content": content, "scope": SHOP, "kind": "decision", **fields}
    made = await stack.post("/v1/remember", body)
    return str(made["id"])


REPLACEMENTS = {
    "tokens": ("Use jsonwebtoken for tokens", "Use jose instead of jsonwebtoken"),
    "unit tests": ("We use Jest for unit tests", "We moved from Jest to Vitest last week"),
    "dates": ("We use moment for dates", "Replaced moment with luxon"),
    "缓存": ("我们用 Memcached 做缓存", "从 Memcached 迁移到 Valkey"),
}


async def test_what_was_replaced_is_marked_and_stands_below_what_replaced_it(stack: Stack) -> None:
    pairs = {}
    for subject, (before, after) in REPLACEMENTS.items():
        old = await _remember(stack, before, kind="convention")
        pairs[subject] = old, await _remember(stack, after, kind="convention")

    async def replaced() -> bool:
        found = [(await stack.get(f"/v1/memories/{old}"))["status"] for old, _ in pairs.values()]
        return set(found) == {"superseded"}

    await eventually(replaced)
    for subject, (old, new) in pairs.items():
        body = {"query": f"what do we use for {subject}?", "scopes": [SHOP]}
        hits = (await stack.post("/v1/recall", body))["memories"]
        order = [hit["id"] for hit in hits]
        assert order.index(new) < order.index(old), subject
        assert {hit["id"]: hit["status"] for hit in hits}[old] == "superseded"
    block = (await stack.get("/v1/context?project=shop"))["markdown"]
    for before, after in REPLACEMENTS.values():
        assert before not in block
        assert after in block


async def test_what_is_only_mentioned_is_not_replaced(stack: Stack) -> None:
    olds = [
        await _remember(stack, text)
        for text in (
            "Deadlocks came from nested transactions opened by pgbouncer at shutdown",
            "Use npm for the docs",
            "Jest snapshots are slow on Windows",
        )
    ]
    news = [
        await _remember(stack, text)
        for text in (
            "Tests replace pgbouncer by a socket pair, which made them twice as quick",
            "Use pnpm instead of npm for the app",
            "We moved from Jest to Vitest",
        )
    ]
    await stack.settled()
    for memory in (*olds, *news):
        found = await stack.get(f"/v1/memories/{memory}")
        assert found["status"] == "active"
        kinds = {near["type"] for near in found["neighbours"]}
        assert not kinds & {"contradicts", "supersedes"}


async def test_a_contradicted_memory_stands_below_what_contradicts_it_and_in_no_context(
    stack: Stack,
) -> None:
    text = "The connection pool of the gateway holds {} connections"
    old = await _remember(stack, text.format(8), kind="convention")
    new = await _remember(stack, text.format(20), kind="convention")

    async def contradicted() -> bool:
        found = await stack.get(f"/v1/memories/{old}")
        return any(n["type"] == "contradicts" for n in found["neighbours"])

    await eventually(contradicted)
    for query in (text.format(8), "how many connections does the gateway pool hold?"):
        found = await stack.post("/v1/recall", {"query": query, "scopes": [SHOP]})
        assert [hit["id"] for hit in found["memories"]] == [new, old], query
    block = (await stack.get("/v1/context?project=shop"))["markdown"]
    assert text.format(8) not in block
    assert text.format(20) in block
    # Who says that the old one holds takes the new one back.
    await stack.post(f"/v1/memories/{old}/confirm", None)
    found = await stack.post("/v1/recall", {"query": text.format(20), "scopes": [SHOP]})
    assert [hit["id"] for hit in found["memories"]] == [old, new]
    assert text.format(8) in (await stack.get("/v1/context?project=shop"))["markdown"]


async def test_in_a_series_of_values_each_contradicts_only_the_previous_one(stack: Stack) -> None:
    ids = [
        await _remember(stack, f"The connection pool of the gateway holds {many} connections")
        for many in (8, 12, 20, 32)
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
        return (found, near, told) if len(told) >= 3 else None

    found, near, told = await eventually(linked)
    assert told == set(zip(ids[1:], ids, strict=False))
    assert len(near) == 2 * len(told)
    assert len({one["confidence"] for one in found[:-1]}) == 1
    assert found[0]["confidence"] < found[-1]["confidence"]


async def test_the_id_of_a_merged_memory_resolves_to_the_surviving_one(stack: Stack) -> None:
    first = "The upload handler lives in src/upload/handler.ts"
    one = await _remember(stack, first, tags=["upload"], scope=SHOP)
    elsewhere = await _remember(stack, first + ".", scope="project/other")
    fuller = first + ", and it delegates to src/upload/store.ts"
    two = await _remember(stack, fuller, tags=["s3"])

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


async def test_each_memory_of_a_batch_is_compared_with_those_before_it(stack: Stack) -> None:
    """Models read several at a time; what says alike is found as if they came one by one."""
    parts = ("upload", "invoice", "mailer")
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

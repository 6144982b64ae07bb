"""Memories, graph and tasks as they were known at an earlier moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, LiteralString

from tests.support.stack import Stack, eventually
from tests.support.tables import run

HERE = "project/shop"


async def _told(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": HERE, "kind": "context", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _picture(
    stack: Stack, memory: str, **query: Any
) -> tuple[set[str], set[tuple[Any, ...]]]:
    """The nodes around a memory and the edges among them."""
    params = {name: value for name, value in query.items() if value is not None}
    found = await stack.get(f"/v1/memories/{memory}/subgraph", params={"depth": 3, **params})
    edges = {(one["from"], one["type"], one["to"]) for one in found["edges"]}
    return {one["id"] for one in found["nodes"]}, edges


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def test_42_edited_unlinked_and_replaced_memories_are_known_as_they_were_without_forgotten(
    stack: Stack,
) -> None:
    started = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
    session = started["session"]
    first = await _told(stack, "The wombat queue loses messages", key="queue", session=session)
    gone = await _told(stack, "Wombat streams have one replica", session=session)
    last = await _told(stack, "Wombat alarms ring at noon", key="alarm", session=session)
    link = {"from": first, "to": last, "type": "led_to"}
    edge = (await stack.post("/v1/links", link))["id"]
    await stack.post("/v1/links", {"from": last, "to": gone, "type": "depends_on"})
    follows = {(gone, "follows", first), (last, "follows", gone)}
    assert await _picture(stack, first) == (
        {first, gone, last}, {*follows, (first, "led_to", last), (last, "depends_on", gone)}
    )  # fmt: skip
    then = _now()

    edit = {"content": "The wombat queue is durable"}
    assert (await stack.call("PATCH", f"/v1/memories/{first}", edit)).status == 200
    assert (await stack.call("DELETE", f"/v1/links/{edge}")).status == 200
    assert (await stack.call("DELETE", f"/v1/memories/{gone}")).status == 200
    newer = await _told(
        stack, "Wombat alarms ring at midnight", key="alarm", supersede_reason="it was moved"
    )
    assert await _picture(stack, first) == ({first, last, newer}, {
        (last, "follows", first), (newer, "supersedes", last)
    })  # fmt: skip
    nodes = {first, last}
    edges = {(last, "follows", first), (first, "led_to", last)}
    for memory in (first, last):
        assert await _picture(stack, memory, as_of=then) == (nodes, edges)
        assert await _picture(stack, memory[-8:], as_of=then) == (nodes, edges)

    read = {m: await stack.get(f"/v1/memories/{m}", params={"as_of": then}) for m in nodes}
    assert [read[m]["content"] for m in (first, last)] == [
        "The wombat queue loses messages",
        "Wombat alarms ring at noon",
    ]
    assert [read[m]["key"] for m in (first, last)] == ["queue", "alarm"]
    assert {read[m]["status"] for m in nodes} == {"active"}
    assert {(n["id"], n["type"], n["direction"]) for n in read[last]["neighbours"]} == {
        (first, "led_to", "in"),
    }
    for name in (gone, gone[-8:]):
        hidden = await stack.call("GET", f"/v1/memories/{name}", params={"as_of": then})
        assert hidden.status == 404
    asked = {"query": "wombat queue", "as_of": then}
    found = await stack.post("/v1/recall", asked)
    hits = {one["id"]: one for one in found["memories"]}
    assert (set(hits), hits[first]["content"]) == (nodes, "The wombat queue loses messages")
    assert {(e["from"], e["type"], e["to"]) for e in found["edges"]} == {(first, "led_to", last)}
    linked = await stack.post("/v1/recall", {"query": "noon", "as_of": then})
    assert {one["id"] for one in linked["memories"]} == nodes
    assert newer not in str((found, linked, read))


async def test_a_merged_memory_is_separate_as_of_an_earlier_moment(stack: Stack) -> None:
    one = await _told(stack, "The upload handler lives in src/upload/handler.ts")
    longer = "The upload handler lives in src/upload/handler.ts, and calls src/upload/store.ts"
    two = await _told(stack, longer)
    then = (await stack.get(f"/v1/memories/{two}"))["created_at"]

    async def merged() -> Any:
        return (await stack.get(f"/v1/memories/{two}")).get("merged_from")

    assert await eventually(merged) == two
    apart = await stack.get(f"/v1/memories/{two}", params={"as_of": then})
    assert (apart["id"], apart["content"], apart["merged_from"]) == (two, longer, None)
    since = await stack.get(f"/v1/memories/{two}", params={"as_of": _now()})
    assert (since["id"], since["merged_from"]) == (one, two)
    assert two in (await _picture(stack, two, as_of=then))[0]
    nodes = (await _picture(stack, two, as_of=_now()))[0]
    assert (one in nodes, two in nodes) == (True, False)
    assert (await stack.get("/v1/graph/stats"))["memories"] == 1
    # What was merged into a memory is forgotten with it, and comes back with it.
    for method, path, status in (("DELETE", "", 404), ("POST", "/restore", 200)):
        assert (await stack.call(method, f"/v1/memories/{one}{path}")).status == 200
        past = await stack.call("GET", f"/v1/memories/{two}", params={"as_of": then})
        assert past.status == status


async def test_a_task_has_its_past_state_and_dependencies_as_of_a_moment(
    stack: Stack,
) -> None:
    design = await _told(stack, "Design the invoice table", kind="task")
    build = await _told(
        stack, "Build the invoice page", kind="task",
        edges=[{"to": design, "type": "depends_on"}],
    )  # fmt: skip
    moments = [_now()]
    claim = {"agent": "ann", "seconds": 600}
    await stack.post(f"/v1/tasks/{design}/claim", claim)
    moments.append(_now())
    done = await stack.call("PATCH", f"/v1/tasks/{design}", {"state": "done", "agent": "ann"})
    assert done.status == 200
    moments.append(_now())
    await stack.post(f"/v1/tasks/{build}/claim", claim)

    async def stood(task: str) -> list[tuple[Any, ...]]:
        found = [(await stack.get(f"/v1/memories/{task}", params={"as_of": at}))["task"]
                 for at in moments]  # fmt: skip
        return [(t["state"], t["claimed_by"], t["depends_on"]) for t in found]

    assert await stood(design) == [("todo", None, []), ("doing", "ann", []), ("done", None, [])]
    assert await stood(build) == [
        ("blocked", None, [design]), ("blocked", None, [design]), ("todo", None, [])
    ]  # fmt: skip
    # A forgotten task is forgotten at every moment, and holds nothing up.
    assert (await stack.call("DELETE", f"/v1/memories/{design}")).status == 200
    assert {one[2] == [] for one in await stood(build)} == {True}


async def test_archived_memories_are_in_a_subgraph_only_on_request(stack: Stack) -> None:
    one, old = await _told(stack, "The heron is grey"), await _told(stack, "The heron was white")
    beyond = await _told(stack, "White birds are seen at night")
    for ends in ((one, old), (old, beyond)):
        await stack.post("/v1/links", {"from": ends[0], "to": ends[1], "type": "relates_to"})
    archived: LiteralString = "update memory set status = 'archived' where id = %s"
    await asyncio.to_thread(run, stack.admin_url, archived, old)
    assert await _picture(stack, one) == ({one}, set())
    edges = {(one, "relates_to", old), (old, "relates_to", beyond)}
    assert await _picture(stack, one, include="archived") == ({one, old, beyond}, edges)

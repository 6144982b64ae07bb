"""Topic nodes appear for what several sessions are about, and dissolve again."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from tests.support.stack import Stack, eventually
from tests.support.tables import idle, rows

SAID = (
    "The pool in `src/pool.py` holds ten connections because the database allows forty",
    "Deadlocks came from nested transactions opened by `src/pool.py` at shutdown",
    "We decided that `src/pool.py` retries with jitter instead of failing at once",
    "Tests replace `src/pool.py` by a socket pair, which made them twice as quick",
)
EDGES = "select id, known_to from edge where meta ->> 'rule' = 'topic' and tenant = %s order by id"


async def _rest(stack: Stack) -> None:
    async def rests() -> bool:
        return await to_thread(idle, stack.admin_url, stack.number())

    await eventually(rests)


async def _learned(stack: Stack) -> list[str]:
    """Four memories of three sessions about one file."""
    sessions = [
        (await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"}))["session"]
        for _ in range(3)
    ]
    made = []
    for nth, text in enumerate(SAID):
        body = {"content": text, "scope": "project/shop", "session": sessions[nth % 3]}
        made.append(str((await stack.post("/v1/remember", body))["id"]))
    await _rest(stack)
    return made


async def _carried(stack: Stack, key: str) -> Any:
    """What importing all into the tenant of a key answers."""
    mine = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=mine) as answer:
        data = await answer.read()
    theirs = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    async with stack.http.post(f"{stack.url}/v1/import", data=data, headers=theirs) as answer:
        assert answer.status == 200
        return await answer.json()


async def _cut(stack: Stack, trace: str, node: str) -> tuple[str, str]:
    """Why a node that a recall came over is not in its answer, and along what it came there."""
    told = await stack.get(f"/v1/traces/{trace}")
    [one] = [one for one in told["candidates"] if one["id"] == node]
    return one["rejection_reason"], one["hops"][0]["type"]


async def _topics(stack: Stack) -> list[Any]:
    return await to_thread(
        rows,
        stack.admin_url,
        "select id::text, key, content, status, version from memory where key like 'topic:%%'"
        " and tenant = %s",
        stack.number(),
    )


async def test_a_subject_of_three_sessions_is_a_topic_until_its_memories_are_gone(
    stack: Stack,
) -> None:
    memories = await _learned(stack)
    first = await stack.post("/v1/maintenance/run", {})
    assert first["topics"] == 1
    [(topic, key, name, status, _)] = await _topics(stack)
    assert (name, status) == ("src/pool.py", "active")
    edges = await to_thread(rows, stack.admin_url, EDGES, stack.number())
    assert len(edges) == 4

    # Nothing new: nothing changes.
    assert (await stack.post("/v1/maintenance/run", {}))["topics"] == 0
    assert await to_thread(rows, stack.admin_url, EDGES, stack.number()) == edges

    around = await stack.get(f"/v1/memories/{memories[0]}/subgraph?depth=1")
    assert {"id": topic, "kind": "entity", "key": key}.items() <= {
        node["id"]: node for node in around["nodes"]
    }[topic].items()
    assert (memories[0], topic) in {
        (one["from"], one["to"]) for one in around["edges"] if one["type"] == "part_of"
    }
    asked = {"query": "src/pool.py", "project": "shop", "depth": 3, "limit": 50}
    answer = await stack.post("/v1/recall", asked)
    found = {hit["id"] for hit in answer["memories"]}
    assert await _cut(stack, answer["trace_id"], topic) == ("anchor", "part_of")
    assert set(memories) <= found
    assert topic not in found
    listed = {one["id"] for one in (await stack.get("/v1/memories?limit=100"))["items"]}
    assert set(memories) <= listed
    assert topic not in listed
    context = await stack.get("/v1/context?project=shop")
    assert topic[-8:] not in str(context)
    assert key not in str(context)
    ours = {"content": "x", "scope": "project/shop", "key": key}
    assert (await stack.call("POST", "/v1/remember", ours)).status == 422

    # Another tenant that takes a file of it all has the same topic, and nothing to change in it.
    two = stack.apart()
    other = two.key
    assert (await _carried(stack, other))["rejected"] == 0
    await _rest(two)
    assert (await stack.post("/v1/maintenance/run", {}, key=other))["topics"] == 0
    assert (await stack.get(f"/v1/memories/{topic}", key=other))["key"] == key

    # One of four is forgotten: three are no topic. Another says it again: the same node is back.
    assert (await stack.call("DELETE", f"/v1/memories/{memories[3]}")).status < 300
    assert (await stack.post("/v1/maintenance/run", {}))["topics"] == 1
    [(_, _, _, status, version)] = await _topics(stack)
    assert status == "archived"
    assert all(
        closed for _, closed in await to_thread(rows, stack.admin_url, EDGES, stack.number())
    )
    again = await stack.post("/v1/maintenance/run", {})
    assert (again["topics"], again["restored"]) == (0, 0)
    more = {"content": "`src/pool.py` logs who waits longest", "scope": "project/shop"}
    await stack.post("/v1/remember", more)
    await _rest(stack)
    assert (await stack.post("/v1/maintenance/run", {}))["topics"] == 1
    [(same, _, _, status, later)] = await _topics(stack)
    assert (same, status) == (topic, "active")
    assert later > version

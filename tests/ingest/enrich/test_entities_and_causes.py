"""Entity nodes and causal edges derived from memories, and who may see them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.support.stack import Stack, eventually
from tests.support.store_setup import admin_rows

OPEN = "select n.content from edge e join memory n on n.tenant = e.tenant and n.id = e.dst "
TOUCHED = OPEN + "where e.src = %s and e.kind = 'touches' and e.known_to is null order by 1"


async def _neighbours(stack: Stack, memory: str, kind: str, **more: Any) -> list[dict[str, Any]]:
    detail = await stack.get(f"/v1/memories/{memory}", **more)
    return [near for near in detail["neighbours"] if near["type"] == kind]


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    """The id of a memory whose slow path is done."""
    made: dict[str, str] = await stack.post("/v1/remember", {"content": content, **fields})
    await stack.settled()
    return made["id"]


async def test_memories_that_name_the_same_entity_share_a_node_that_no_list_shows(
    stack: Stack,
) -> None:
    shop = {"scope": "project/shop"}
    one = await _remember(stack, "Postgres answers on port 5433, see src/db.ts", **shop)
    two = await _remember(stack, "PostgreSQL is backed up every night", **shop)
    [near] = await _neighbours(stack, two, "touches")
    node = await stack.get(f"/v1/memories/{near['id']}")
    assert (node["kind"], node["content"], node["scope"]) == (
        "entity",
        "postgresql",
        "project/shop",
    )
    labels = {(near["kind"], near["label"]) for near in await _neighbours(stack, one, "touches")}
    assert labels == {("entity", "postgresql"), ("entity", "port 5433"), ("file", "src/db.ts")}
    assert [near["id"] for near in await _neighbours(stack, one, "relates_to")] == [two]
    listed = await stack.get("/v1/memories")
    assert {item["id"] for item in listed["items"]} == {one, two}
    found = await stack.post("/v1/recall", {"query": "postgresql"})
    assert {memory["id"] for memory in found["memories"]} <= {one, two}
    taken = {"content": "mine", "key": "entity:postgresql"}
    refused = await stack.call("POST", "/v1/remember", taken)
    assert (refused.status, refused.body["field"]) == (422, "key")


async def test_an_entity_name_of_one_agent_is_not_shown_to_another(stack: Stack) -> None:
    mine = await _remember(stack, "I keep secretPlanner for myself", scope="agent/a")
    [node] = await _neighbours(stack, mine, "touches")
    assert (await stack.get(f"/v1/memories/{node['id']}"))["scope"] == "agent/a"
    other = stack.key_of(agent="b", reads=("agent/b/*", "project/*"), writes=("agent/b/*",))
    assert (await stack.call("GET", f"/v1/memories/{node['id']}", key=other)).status == 404


async def test_a_bug_is_linked_to_its_stated_effects_and_never_in_a_circle(stack: Stack) -> None:
    shop = {"scope": "project/shop"}
    bug = await _remember(
        stack, "The connection pool in src/db/pool.ts runs dry under load", kind="bug", **shop
    )
    said = "Raised pool size in src/db/pool.ts because the connection pool ran dry under load"
    decision = await _remember(stack, said, kind="decision", **shop)
    [effect] = await _neighbours(stack, bug, "led_to")
    assert (effect["id"], effect["direction"]) == (decision, "out")
    sql = "select meta, weight from edge where kind = 'led_to' and tenant = %s"
    [(meta, weight)] = admin_rows(stack.admin_url, sql, stack.number())
    assert (meta["evidence"], meta["rule"]) == (said, "said")
    assert round(weight, 2) == meta["confidence"]
    told = [{"to": bug, "type": "led_to"}]
    turned = "Workers restart hourly because the connection pool runs dry under load"
    before = await _remember(stack, turned, kind="context", edges=told, **shop)
    edges = [n for n in await _neighbours(stack, before, "led_to") if n["id"] == bug]
    assert [edge["direction"] for edge in edges] == ["out"]


async def test_edges_to_entities_no_longer_named_are_closed_and_a_moved_file_is_kept(
    alone: Stack,
) -> None:
    memory = await _remember(
        alone, "AuthService caches in Redis, see src/old.ts", scope="project/shop"
    )
    admin_rows(alone.admin_url, "update anchor set path = 'src/new.ts' where path = 'src/old.ts'")
    admin_rows(
        alone.admin_url,
        "update memory set content = 'AuthService caches in Memcached, see src/old.ts',"
        " version = version + 1 where id = %s",
        memory,
    )
    announced = "select enqueue_event(tenant, %s, 'memory.default.remembered', jsonb_build_object("
    announced += "'id', id, 'version', version), '{}') from memory where id = %s"
    admin_rows(alone.admin_url, announced, uuid4(), memory)

    async def renamed() -> bool:
        touched = [row[0] for row in admin_rows(alone.admin_url, TOUCHED, memory)]
        return touched == ["auth-service", "memcached", "src/old.ts"]

    await eventually(renamed)
    closed = (
        "select count(*) from edge where src = %s and kind = 'touches' and known_to is not null"
    )
    assert admin_rows(alone.admin_url, closed, memory) == [(1,)]
    assert admin_rows(alone.admin_url, "select path from anchor") == [("src/new.ts",)]


async def test_a_memory_is_linked_to_its_session_node_if_there_is_one(stack: Stack) -> None:
    begun = await stack.post("/v1/sessions/start", {"agent": "a", "project": "shop"})
    session = begun["session"]
    body = {"content": "What was done", "kind": "session", "scope": "project/shop"}
    node = (await stack.post("/v1/remember", body))["id"]
    key = f"session:{session}"
    admin_rows(stack.admin_url, "update memory set key = %s where id = %s", key, node)
    memory = await _remember(stack, "Deploys run at noon", scope="project/shop", session=session)
    assert [near["id"] for near in await _neighbours(stack, memory, "learned_in")] == [node]

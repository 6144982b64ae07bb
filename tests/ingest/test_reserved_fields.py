"""Keys and metadata that the services read are written by the services alone, and read warily."""

from __future__ import annotations

import json
from typing import Any

from reverie.contracts.memories.system_metadata import RESERVED_KEY_PREFIXES, RESERVED_METADATA
from tests.support.stack import Stack
from tests.support.tables import run

JUNK: tuple[Any, ...] = (
    None, True, 0, -1.5, 1e300, "", "x", [], [1], [["a"]], ["x", None], {}, {"commit": [1]},
    {"commit": {}, "branch": [], "event": 1, "run": None}, {"verified": 3, "topic": []},
)  # fmt: skip
"""Values of every type of JSON."""
EDGE_METADATA = ("named", "since", "lines", "symbols", "blob", "modified_at", "memory_version")
CHANGE: dict[str, Any] = {
    "project": "shop",
    "branch": "main",
    "after": "a" * 40,
    "commits": [{"sha": "a" * 40, "subject": "x", "committed_at": "2099-01-01T00:00:00Z"}],
    "files": [{"path": "src/loop.py", "status": "deleted"}],
}


async def test_no_caller_sets_metadata_that_the_services_read(stack: Stack) -> None:
    body = {"content": "the loop runs", "scope": "project/shop"}
    made = await stack.post("/v1/remember", {**body, "metadata": {"own": 1}})
    path = f"/v1/memories/{made['id']}"
    for name in RESERVED_METADATA:
        reserved = {**body, "metadata": {name: "x"}}
        changed = {"metadata": {name: {"a": 1}}}
        for call in (("POST", "/v1/remember", reserved), ("PATCH", path, changed)):
            refused = await stack.call(*call)
            assert (refused.status, refused.body["field"]) == (422, f"metadata.{name}")
        batch = await stack.post("/v1/remember/batch", {"items": [reserved]})
        assert batch["items"][0]["field"] == f"items.0.metadata.{name}"


async def test_no_caller_takes_a_key_that_the_services_give(stack: Stack) -> None:
    for prefix in RESERVED_KEY_PREFIXES:
        for key in (f"{prefix}a:b", f"{prefix.upper()}a"):
            refused = await stack.call("POST", "/v1/remember", {"content": "mine", "key": key})
            assert (refused.status, refused.body["field"]) == (422, "key"), key


async def test_an_edit_of_metadata_leaves_what_the_services_keep_there(stack: Stack) -> None:
    fact = {"topic": "ports", "statement": "It listens on 5433.", "confidence": "high",
            "domains": ["example.org"], "verified": "2026-01-02"}  # fmt: skip
    made = await stack.post("/v1/facts", fact)
    path = f"/v1/memories/{made['id']}"
    kept = (await stack.get(path))["metadata"]["fact"]
    edited = await stack.call("PATCH", path, {"metadata": {"own": 1}})
    assert edited.status == 200
    assert (await stack.get(path))["metadata"] == {"own": 1, "fact": kept}
    again = await stack.call("PATCH", path, {"metadata": {"own": 2, "fact": kept}})
    assert again.status == 200, "what was read may be sent back"
    [listed] = (await stack.get("/v1/facts"))["items"]
    assert listed["fact"] == kept


async def test_junk_in_what_the_services_read_fails_no_list_change_or_project(stack: Stack) -> None:
    sound = await stack.post("/v1/facts", {
        "topic": "ports", "statement": "It listens on 5433.", "confidence": "high",
        "verified": "2026-01-02", "scope": "project/shop"})  # fmt: skip
    git = {"files": ["src/loop.py"]}
    bodies = [
        {"content": f"the loop of part {n} runs", "scope": "project/shop", "git": git,
         "kind": "skill" if n % 2 else "lesson"}
        for n in range(len(JUNK))
    ]  # fmt: skip
    items = (await stack.post("/v1/remember/batch", {"items": bodies}))["items"]
    ids = [item["id"] for item in items]
    await stack.settled()
    for n, (memory, junk) in enumerate(zip(ids, JUNK, strict=True)):
        metadata = json.dumps(dict.fromkeys(RESERVED_METADATA, junk))
        run(
            stack.admin_url,
            "update memory set metadata = %s::jsonb, key = %s where id = %s",
            metadata,
            f"learn:ports:{n}",
            memory,
        )
        run(
            stack.admin_url,
            "update edge set meta = meta || %s::jsonb where src = %s and kind = 'touches'",
            json.dumps(dict.fromkeys(EDGE_METADATA, junk)),
            memory,
        )
    await stack.post("/v1/git/changes", CHANGE)
    await stack.settled()
    marked = {item["memory"]["id"] for item in await stack.walked("/v1/stale", 50)}
    # One text is a path of another file.
    assert marked == {memory for memory, junk in zip(ids, JUNK, strict=True) if junk != "x"}
    for memory, junk in zip(ids, JUNK, strict=True):
        run(
            stack.admin_url,
            "update stale_mark set lines = %s::jsonb, via = %s where memory = %s",
            json.dumps(junk),
            ["<-part_of-", "not-a-uuid"],
            memory,
        )
    for path in ("/v1/stale?limit=50", "/v1/memories?limit=50", "/v1/skills", "/v1/graph/stats"):
        assert (await stack.call("GET", path)).status == 200, path
    assert [item["id"] for item in (await stack.get("/v1/facts"))["items"]] == [sound["id"]]
    assert (await stack.call("GET", "/v1/impact?path=src/loop.py&project=shop")).status == 200
    for memory in ids:
        for path in ("", "/provenance", "/history"):
            found = await stack.call("GET", f"/v1/memories/{memory}{path}")
            assert found.status == 200, (path, found)
        edit = {"content": f"the loop of {memory} runs on"}
        assert (await stack.call("PATCH", f"/v1/memories/{memory}", edit)).status == 200
    await stack.settled()
    found = await stack.post("/v1/recall", {"query": "which loop runs", "project": "shop"})
    assert not found["degraded"]
    assert (await stack.post("/v1/maintenance/run", {}))["examined"] >= 0
    headers = {"Authorization": f"Bearer {stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export", headers=headers) as exported:
        lines = (await exported.text()).splitlines()
    assert {json.loads(line).get("id") for line in lines} >= set(ids)

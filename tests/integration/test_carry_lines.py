"""Everything goes out as lines and comes in again, the same."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from reverie.domain.access import Role
from reverie.domain.ids import new_id
from reverie.recall.export_routes import HEADER
from tests.stack import Stack
from tests.tables import run

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


async def _export(stack: Stack, key: str | None = None, query: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {key or stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export{query}", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


async def _import(
    stack: Stack, data: bytes, query: str = "", key: str | None = None, kind: str = "x-ndjson"
) -> Any:
    headers = {
        "Authorization": f"Bearer {key or stack.key}",
        "Content-Type": kind if "/" in kind else f"application/{kind}",
    }
    url = f"{stack.url}/v1/import{query}"
    async with stack.http.post(url, data=BytesIO(data), headers=headers) as answer:
        body = await answer.json()
        assert answer.status == 200, body
        return body


def _lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def _file(*records: dict[str, Any]) -> bytes:
    return "\n".join([HEADER, *map(json.dumps, records)]).encode()


def _memory(content: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "memory",
        "id": str(new_id()),
        "scope": "project/shop",
        "kind": "context",
        "tier": "warm",
        "status": "active",
        "version": 1,
        "content": content,
        "confidence": 0.8,
        "pinned": False,
        "source": "remember",
        "created": "2026-01-02T03:04:05+00:00",
        "updated": "2026-01-02T03:04:05+00:00",
        **fields,
    }


def _edge(source: str, target: str, kind: str = "led_to") -> dict[str, Any]:
    return {
        "type": "edge",
        "id": str(new_id()),
        "src": source,
        "dst": target,
        "kind": kind,
        "weight": 0.5,
        "known_from": "2026-01-02T03:04:05+00:00",
    }


async def test_a_file_is_taken_in_once_and_bad_lines_are_named(stack: Stack) -> None:
    one, two = _memory("Tokens are signed with RS256", tags=["jwt"]), _memory("Keys rotate daily")
    bad = [
        {**_memory("a secret " + SECRET)},
        {**_memory("theirs"), "tenant": "another"},
        {**_memory("no such kind"), "kind": "sorcery"},
    ]
    data = _file(one, two, *bad, _edge(one["id"], two["id"]), _edge(two["id"], one["id"]))
    data += b'\n{"type": "memory", oops\n'
    before = await _export(stack)
    dry = await _import(stack, data, "?dry_run=true")
    assert (dry["created"], dry["refused"], dry["dry_run"]) == (3, 5, True)
    assert await _export(stack) == before
    made = await _import(stack, data)
    assert (made["created"], made["refused"]) == (3, 5)
    reasons = {one["line"]: one["reason"] for one in made["refused_lines"]}
    assert sorted(reasons) == [4, 5, 6, 8, 9]
    assert "secret" in reasons[4]
    assert SECRET not in str(made)
    assert "cycle" in reasons[8]
    again = await _import(stack, data)
    assert (again["created"], again["updated"], again["skipped"]) == (0, 0, 3)
    found = await stack.post("/v1/recall", {"query": "RS256 tokens"})
    assert found["memories"][0]["id"] == one["id"]


async def test_an_export_taken_in_elsewhere_is_exported_the_same(stack: Stack) -> None:
    body = {
        "content": "Use jsonwebtoken",
        "key": "jwt",
        "scope": "project/shop",
        "tags": ["b", "a"],
    }
    await stack.post("/v1/remember", body)
    await stack.post("/v1/remember", {**body, "content": "Use jose", "supersede_reason": "edge"})
    begun = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "shop"})
    turns = [{"role": "user", "content": "Why does the login fail?"}]
    await stack.post("/v1/turns", {"session": begun["session"], "turns": turns})
    first = await _export(stack)
    elsewhere = stack.key_of(role=Role.ADMIN, tenant="elsewhere")
    made = await _import(stack, first, key=elsewhere)
    assert made["refused"] == 0, made
    kinds = {one["type"] for one in _lines(first)}
    assert {"header", "memory", "memory_version", "edge", "session", "turn"} <= kinds
    assert await _export(stack, elsewhere) == first


async def test_a_key_exports_what_it_may_read_and_imports_where_it_may_write(stack: Stack) -> None:
    mine, other = _memory("ours", scope="project/a"), _memory("theirs", scope="project/b")
    await _import(stack, _file(mine, other))
    key = stack.key_of(role=Role.WRITER, reads=("project/a",), writes=("project/a",))
    seen = [one for one in _lines(await _export(stack, key)) if one["type"] == "memory"]
    assert [one["id"] for one in seen] == [mine["id"]]
    made = await _import(stack, _file({**_memory("into b"), "scope": "project/b"}), key=key)
    assert made["refused_lines"][0]["line"] == 2


async def test_forgotten_memories_are_in_no_export(stack: Stack) -> None:
    made = await stack.post("/v1/remember", {"content": "to be forgotten", "scope": "project/shop"})
    run(stack.admin_url, "update memory set status = 'deleted' where id = %s", made["id"])
    assert made["id"].encode() not in await _export(stack)
    assert b"to be forgotten" not in await _export(stack)


async def test_eleven_hundred_memories_are_exported_as_eleven_hundred(stack: Stack) -> None:
    records = [_memory(f"Fact number {n} of " + "very " * 150) for n in range(1100)]
    data = _file(*records)
    assert len(data) > 2**20, "more than the body of any other request may hold"
    made = await _import(stack, data)
    assert made["created"] == 1100
    out = [one for one in _lines(await _export(stack)) if one["type"] == "memory"]
    assert len(out) == 1100


@pytest.mark.parametrize(
    ("strategy", "content", "outcome"),
    [("merge", "newer", "updated"), ("replace", "newer", "updated"), ("skip", "older", "skipped")],
)
async def test_a_strategy_says_which_side_wins(
    stack: Stack, strategy: str, content: str, outcome: str
) -> None:
    old = _memory("older")
    await _import(stack, _file(old))
    new = {**old, "content": "newer", "updated": "2026-02-02T03:04:05+00:00"}
    made = await _import(stack, _file(new), f"?strategy={strategy}")
    assert made[outcome] == 1
    assert (await stack.get(f"/v1/memories/{old['id']}"))["content"] == content
    again = await _import(stack, _file(new), f"?strategy={strategy}")
    assert again["skipped"] == 1

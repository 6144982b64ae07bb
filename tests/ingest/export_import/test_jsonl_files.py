"""Export and import as JSON lines."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from typing import Any

import pytest
from yarl import URL

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.support.import_files import send_import
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import run, value

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


async def _export(stack: Stack, key: str | None = None, query: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {key or stack.key}"}
    async with stack.http.get(f"{stack.url}/v1/export{query}", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


async def _import(stack: Stack, data: bytes, query: str = "", **more: str) -> Any:
    status, body = await send_import(stack, BytesIO(data), query, **more)
    assert status == 200, body
    return body


def _lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def _file(*records: dict[str, Any]) -> bytes:
    return "\n".join([JSONL_HEADER, *map(json.dumps, records)]).encode()


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


async def _refused(stack: Stack, data: bytes, query: str = "", **more: str) -> dict[str, str]:
    """The refusal of a file as reasons by place."""
    status, body = await send_import(stack, BytesIO(data), query, **more)
    assert status == 422, body
    return {one["field"]: one["reason"] for one in body["errors"]}


async def test_a_file_is_imported_once_and_conflicts_with_the_store_are_named(
    stack: Stack,
) -> None:
    one, two = _memory("Tokens are signed with RS256", tags=["jwt"]), _memory("Keys rotate daily")
    data = _file(one, two, _edge(one["id"], two["id"]), _edge(two["id"], one["id"]))
    before = await _export(stack)
    dry = await _import(stack, data, "?dry_run=true")
    assert (dry["created"], dry["rejected"], dry["dry_run"]) == (3, 1, True)
    assert await _export(stack) == before
    made = await _import(stack, data)
    assert (made["created"], made["rejected"]) == (3, 1)
    [refused] = made["rejected_lines"]
    assert refused["line"] == 5
    assert "cycle" in refused["reason"]
    again = await _import(stack, data)
    assert (again["created"], again["updated"], again["skipped"]) == (0, 0, 3)
    found = await stack.post("/v1/recall", {"query": "RS256 tokens"})
    assert found["memories"][0]["id"] == one["id"]


async def test_a_file_with_unsound_lines_is_refused_as_a_whole_with_line_and_field(
    stack: Stack,
) -> None:
    bad = [
        {**_memory("theirs"), "tenant": "another"},
        {**_memory("no such kind"), "kind": "sorcery"},
    ]
    data = _file(_memory("Keys rotate daily"), *bad) + b'\n{"type": "memory", oops\n'
    for query in ("", "?dry_run=true"):
        reasons = await _refused(stack, data, query)
        assert list(reasons) == ["line 3: tenant", "line 4: kind", "line 5"]
        assert "not a kind" in reasons["line 4: kind"]
    assert b"Keys rotate daily" not in await _export(stack)


async def test_a_secret_in_a_file_is_redacted_as_in_a_write(stack: Stack) -> None:
    told = f"the key is {SECRET}"
    memory = _memory(told, summary=told, tags=[SECRET], metadata={"password": "hunter2-Xy9!"})
    then = {"version": 0, "reason": told, "known_from": memory["created"]}
    version = {"type": "memory_version", "memory": memory["id"], "content": told, **then}
    version |= {"status": "active", "known_to": memory["created"]}
    version["state"] = {"summary": told, "tags": [SECRET], "git": {"branch": SECRET}}
    talk = {"type": "session", "id": str(new_id()), "agent": "ann", "scope": "project/shop"}
    talk |= {"started": memory["created"], "appended": memory["created"], "summary": told}
    turn = {"type": "turn", "id": str(new_id()), "session": talk["id"], "ordinal": 0}
    turn |= {"role": "user", "content": told, "at": memory["created"]}
    summary = {"type": "summary", "scope": "project/shop", "version": 1, "content": told}
    summary |= {"tokens": 4, "updated": memory["created"]}
    made = await _import(stack, _file(memory, version, talk, turn, summary))
    assert (made["created"], made["rejected"]) == (5, 0)
    assert made["redactions"] >= 11
    out = await _export(stack)
    assert SECRET.encode() not in out
    assert b"hunter2" not in out
    assert (await stack.get(f"/v1/memories/{memory['id']}"))["content"].startswith("the key is [")


async def _rich(stack: Stack) -> None:
    """Memories of every sort, with all that hangs on them."""
    shop = {"scope": "project/shop"}
    body = {**shop, "content": "Use jsonwebtoken in src/auth.ts", "key": "jwt", "tags": ["b", "a"]}
    await stack.post("/v1/remember", body)
    # What changes while it is enriched waits for the clock.
    await stack.settled()
    await stack.post("/v1/remember", {**body, "content": "Use jose", "supersede_reason": "edge"})
    handler = "The upload handler lives in src/upload/handler.ts"
    kept = await stack.post("/v1/remember", {**shop, "content": handler})
    more = {**shop, "content": handler + ", and it delegates to src/upload/store.ts"}
    gone = await stack.post("/v1/remember", more)

    async def merged() -> Any:
        return (await stack.get(f"/v1/memories/{gone['id']}")).get("merged_from")

    await eventually(merged)
    plan = {**shop, "kind": "task", "content": "Draw the table of invoices"}
    first = await stack.post("/v1/remember", plan)
    then = {**plan, "content": "Build it", "edges": [{"to": first["id"], "type": "depends_on"}]}
    await stack.post("/v1/remember", then)
    await stack.settled()
    await stack.post(f"/v1/tasks/{first['id']}/claim", {"agent": "ann", "seconds": 900})
    claim = {**shop, "topic": "nats", "statement": "Streams keep order", "confidence": "high"}
    await stack.post("/v1/facts", {**claim, "verified": "2026-01-10"})
    begun = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "shop"})
    turns = [{"role": "user", "content": "Why does the login fail?"}]
    await stack.post("/v1/turns", {"session": begun["session"], "turns": turns})
    sha = "c" * 40
    change: dict[str, Any] = {"project": "shop", "branch": "main", "after": sha}
    change["commits"] = [{"sha": sha, "committed_at": "2100-01-01T00:00:00Z", "subject": "Move"}]
    change["files"] = [{"path": "src/upload/handler.ts", "status": "modified"}]
    await stack.post("/v1/git/changes", change)

    used: set[str] = set()

    async def stale_and_used() -> Any:
        body = {"query": "upload handler", "session": begun["session"]}
        used.update(one["id"] for one in (await stack.post("/v1/recall", body))["memories"])
        lines = [one for one in _lines(await _export(stack)) if one.get("id") == kept["id"]]
        return "stale" in lines[0] and "usage" in lines[0]

    await eventually(stale_and_used)
    by, counted = f"session {begun['session']}", "select count(*) from memory_use_session"
    counted += " where used_by = %s and memory = any(%s::uuid[])"
    await eventually(
        lambda: asyncio.sleep(0, value(stack.admin_url, counted, by, [*used]) == len(used))
    )
    await stack.settled()


async def test_an_imported_export_is_exported_identically(stack: Stack) -> None:
    await _rich(stack)
    first = await _export(stack)
    held = _lines(first)
    assert {one["type"] for one in held} >= {"memory", "memory_version", "edge", "anchor", "turn"}
    told = {name for one in held for name, value in one.items() if value}
    assert told >= {"utterances", "usage", "task", "stale", "merged_into", "settled", "known_to"}
    assert all(one["settled"] for one in held if one["type"] == "memory")
    elsewhere = stack.apart().key
    made = await _import(stack, first, key=elsewhere)
    assert made["rejected"] == 0, made
    assert await _export(stack, elsewhere) == first
    # Two that were never compared, after the others: once they are one, all went the slow way.
    twins = [_memory(f"Backups of src/db.ts go to S3{end}", scope="project/b") for end in ("", ".")]
    await _import(stack, _file(*twins), key=elsewhere)

    async def merged() -> Any:
        shown = await stack.get(f"/v1/memories/{twins[1]['id']}", key=elsewhere)
        return shown.get("merged_from") or shown["metadata"].get("merged")

    await eventually(merged)
    await stack.settled()
    assert await _export(stack, elsewhere, "?scope=project/shop") == await _export(
        stack, query="?scope=project/shop"
    )
    found = await stack.post("/v1/recall", {"query": "jose"}, key=elsewhere)
    assert "Use jose" in {one["content"] for one in found["memories"]}
    whole = await _import(stack, first, "?strategy=replace", key=elsewhere)
    assert (whole["created"], whole["updated"], whole["rejected"]) == (0, 0, 0)


async def test_a_line_cannot_set_derived_fields_and_nodes_and_merged_memories_stay_unsearched(
    stack: Stack,
) -> None:
    kept = _memory("Tokens are signed with RS256", doc=1, enriched_version=9, words="'forged':1")
    gone = _memory("Tokens rotate", status="superseded", superseded_by=kept["id"])
    gone["merged_into"] = kept["id"]
    node = _memory("src/tokens.ts", kind="file", key="file:src/tokens.ts")
    again = _memory("Carts expire", doc=1)
    made = await _import(stack, _file(kept, gone, node, again))
    assert (made["created"], made["rejected"]) == (4, 0)
    await stack.settled()
    for query in ("tokens", "forged", "src/tokens.ts"):
        found = await stack.post("/v1/recall", {"query": query})
        assert not {gone["id"], node["id"]} & {one["id"] for one in found["memories"]}
    shown = await stack.get(f"/v1/memories/{gone['id']}")
    assert (shown["id"], shown["merged_from"]) == (kept["id"], gone["id"])
    other = stack.apart().key
    twin = {**kept, "id": str(new_id())}
    await _import(stack, _file(twin), key=other)
    await _import(stack, _file(gone, kept), key=other)
    shown = await stack.get(f"/v1/memories/{gone['id']}", key=other)
    assert shown["id"] == twin["id"]


async def test_a_key_exports_what_it_may_read_and_imports_where_it_may_write(stack: Stack) -> None:
    mine, other = _memory("ours", scope="project/a"), _memory("theirs", scope="project/b")
    await _import(stack, _file(mine, other))
    key = stack.key_of(role=KeyRole.WRITER, reads=("project/a",), writes=("project/a",))
    seen = [one for one in _lines(await _export(stack, key)) if one["type"] == "memory"]
    assert [one["id"] for one in seen] == [mine["id"]]
    data = _file(_memory("into a", scope="project/a"), _memory("into b", scope="project/b"))
    assert list(await _refused(stack, data, key=key)) == ["line 3: scope"]
    assert b"into a" not in await _export(stack)


async def test_transcripts_of_another_agent_are_refused(stack: Stack) -> None:
    at = "2026-01-02T03:04:05+00:00"
    talks, said = [], []
    for agent in ("ann", "bob"):
        talk = {"type": "session", "id": str(new_id()), "agent": agent, "scope": "project/shop"}
        talks.append({**talk, "started": at, "appended": at})
        turn = {"type": "turn", "id": str(new_id()), "session": talk["id"], "ordinal": 0, "at": at}
        said.append({**turn, "role": "user", "content": f"said to {agent}"})
    ann = stack.key_of(role=KeyRole.WRITER, agent="ann")
    assert list(await _refused(stack, _file(*talks, *said), key=ann)) == ["line 3: agent"]
    made = await _import(stack, _file(talks[0], said[0]), key=ann)
    assert made["created"] == 2
    # Into a transcript of another agent that stands, no turn comes either.
    await _import(stack, _file(talks[1]))
    made = await _import(stack, _file(said[1]), key=ann)
    assert (made["created"], made["rejected"]) == (0, 1)
    assert b"said to bob" not in await _export(stack)


async def test_a_truncated_or_oversized_upload_changes_nothing(
    database: DatabaseUrls, nats_url: str
) -> None:
    data = _file(*(_memory(f"Fact {n}") for n in range(20)))
    async with running_stack(database, nats_url, model_home(), import_limit=len(data)) as stack:
        before = await _export(stack)
        url = URL(stack.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = (
            f"POST /v1/import HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {stack.key}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        writer.write(head.encode() + data[: len(data) // 2])
        await writer.drain()
        writer.write_eof()
        await reader.read()
        writer.close()
        headers = {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/x-ndjson"}
        longer = data + b"\n" + data
        async with stack.http.post(
            f"{stack.url}/v1/import", data=BytesIO(longer), headers=headers
        ) as answer:
            assert answer.status == 413
            assert "import_limit" in (await answer.json())["detail"]
        whole = BytesIO(b" " * ((1 << 20) + 1))
        async with stack.http.post(f"{stack.url}/mcp", data=whole, headers=headers) as answer:
            assert answer.status == 413
            assert "body_limit" in (await answer.json())["detail"]
        assert await _export(stack) == before
        assert (await _import(stack, data))["created"] == 20


async def test_forgotten_memories_are_in_no_export(stack: Stack) -> None:
    made = await stack.post("/v1/remember", {"content": "to be forgotten", "scope": "project/shop"})
    run(stack.admin_url, "update memory set status = 'deleted' where id = %s", made["id"])
    assert made["id"].encode() not in await _export(stack)
    assert b"to be forgotten" not in await _export(stack)


@pytest.mark.parametrize(
    ("strategy", "content", "outcome"),
    [("merge", "newer", "updated"), ("replace", "newer", "updated"), ("skip", "older", "skipped")],
)
async def test_the_conflict_strategy_decides_which_side_wins(
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


async def test_a_memory_replaced_by_an_import_was_current_until_then(stack: Stack) -> None:
    old = await stack.post(
        "/v1/remember", {"content": "older", "key": "port", "scope": "project/shop"}
    )
    made = await _import(stack, _file(_memory("newer", key="port")), "?strategy=replace")
    assert made["created"] == 1
    now, before = (await stack.get(f"/v1/memories/{old['id']}/history"))["items"]
    assert (now["status"], before["status"]) == ("superseded", "active")
    assert now["known_from"] == before["known_to"] > before["known_from"]


BROKEN = """
create function broken() returns trigger language plpgsql as $$
begin
  raise exception 'the disk is full';
end $$;
create trigger broken before insert on memory for each row
  when (new.content like 'Fact 700 %%') execute function broken()
"""


async def test_an_import_that_broke_off_is_completed_by_the_same_file(
    database: DatabaseUrls, nats_url: str
) -> None:
    """With more than the body of any other request may hold, all of which is exported again."""
    file = _file(*(_memory(f"Fact {number} of " + "very " * 150) for number in range(1_100)))
    assert len(file) > 2**20
    async with running_stack(database, nats_url, model_home(), ingest_role="api") as stack:
        run(stack.admin_url, BROKEN)
        headers = {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/x-ndjson"}
        url, sent = f"{stack.url}/v1/import", BytesIO(file)
        async with stack.http.post(url, data=sent, headers=headers) as answer:
            assert answer.status >= 500
        stored = value(stack.admin_url, "select count(*) from memory")
        assert 0 < stored < 1_100
        run(stack.admin_url, "drop trigger broken on memory")
        done = await _import(stack, file)
        assert (done["skipped"], done["created"]) == (stored, 1_100 - stored)
        out = [one for one in _lines(await _export(stack)) if one["type"] == "memory"]
        assert len(out) == 1_100

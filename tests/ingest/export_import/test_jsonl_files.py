"""Export and import as JSON lines."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from yarl import URL

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from reverie.store.memories import export_import
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.write import jsonl_import
from tests.support.import_files import (
    AT,
    Line,
    edge_line,
    export_file,
    memory_line,
    send_import,
    session_line,
    stale_mark,
    version_line,
)
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import run, value

JSONL = {"Content-Type": "application/x-ndjson"}
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


def _turn_line(session: Line, content: str) -> Line:
    turn = {"type": "turn", "id": str(new_id()), "session": session["id"], "ordinal": 0, "at": AT}
    return {**turn, "role": "user", "content": content}


async def test_a_file_is_imported_once_and_conflicts_with_the_store_are_named(stack: Stack) -> None:
    one, two = (
        memory_line("Tokens are signed with RS256", tags=["jwt"]),
        memory_line("Keys rotate daily"),
    )
    edges = [edge_line(src=src["id"], dst=dst["id"]) for src, dst in ((one, two), (two, one))]
    data = export_file(one, two, *edges)
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


async def test_a_secret_in_a_file_is_redacted_as_in_a_write(stack: Stack) -> None:
    told = f"the key is {SECRET}"
    metadata = {"password": "hunter2-Xy9!"}
    memory = memory_line(told, summary=told, tags=[SECRET], metadata=metadata)
    state = {"summary": told, "tags": [SECRET], "git": {"branch": SECRET}}
    version = version_line(memory, content=told, reason=told, state=state)
    session = session_line(summary=told)
    summary = {"type": "summary", "scope": "project/shop", "version": 1, "content": told}
    summary |= {"tokens": 4, "updated": AT}
    lines = (memory, version, session, _turn_line(session, told), summary)
    made = await _import(stack, export_file(*lines))
    assert (made["created"], made["rejected"]) == (5, 0)
    assert made["redactions"] >= 11
    out = await _export(stack)
    assert SECRET.encode() not in out
    assert b"hunter2" not in out
    assert (await stack.get(f"/v1/memories/{memory['id']}"))["content"].startswith("the key is [")


async def _fill(stack: Stack) -> None:
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
    await _fill(stack)
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
    twins = [
        memory_line(f"Backups of src/db.ts go to S3{end}", scope="project/b") for end in ("", ".")
    ]
    await _import(stack, export_file(*twins), key=elsewhere)

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
    kept = memory_line(
        "Tokens are signed with RS256", doc=1, enriched_version=9, words="'forged':1"
    )
    gone = memory_line("Tokens rotate", status="superseded", superseded_by=kept["id"])
    gone["merged_into"] = kept["id"]
    node = memory_line("src/tokens.ts", kind="file", key="file:src/tokens.ts")
    again = memory_line("Carts expire", doc=1)
    made = await _import(stack, export_file(kept, gone, node, again))
    assert (made["created"], made["rejected"]) == (4, 0)
    await stack.settled()
    for query in ("tokens", "forged", "src/tokens.ts"):
        found = await stack.post("/v1/recall", {"query": query})
        assert not {gone["id"], node["id"]} & {one["id"] for one in found["memories"]}
    shown = await stack.get(f"/v1/memories/{gone['id']}")
    assert (shown["id"], shown["merged_from"]) == (kept["id"], gone["id"])
    other = stack.apart().key
    twin = {**kept, "id": str(new_id())}
    await _import(stack, export_file(twin), key=other)
    await _import(stack, export_file(gone, kept), key=other)
    shown = await stack.get(f"/v1/memories/{gone['id']}", key=other)
    assert shown["id"] == twin["id"]


async def test_a_key_exports_what_it_may_read_and_imports_where_it_may_write(stack: Stack) -> None:
    mine, other = memory_line("ours", scope="project/a"), memory_line("theirs", scope="project/b")
    await _import(stack, export_file(mine, other))
    key = stack.key_of(role=KeyRole.WRITER, reads=("project/a",), writes=("project/a",))
    seen = [one for one in _lines(await _export(stack, key)) if one["type"] == "memory"]
    assert [one["id"] for one in seen] == [mine["id"]]
    data = export_file(
        memory_line("into a", scope="project/a"), memory_line("into b", scope="project/b")
    )
    status, body = await send_import(stack, data, key=key)
    assert (status, body["field"]) == (422, "line 3: scope")
    assert b"into a" not in await _export(stack)


async def test_transcripts_of_another_agent_are_refused(stack: Stack) -> None:
    sessions = [session_line(agent=agent) for agent in ("ann", "bob")]
    turns = [_turn_line(one, f"said to {one['agent']}") for one in sessions]
    ann = stack.key_of(role=KeyRole.WRITER, agent="ann")
    status, body = await send_import(stack, export_file(*sessions, *turns), key=ann)
    assert (status, body["field"]) == (422, "line 3: agent")
    made = await _import(stack, export_file(sessions[0], turns[0]), key=ann)
    assert made["created"] == 2
    # Into a transcript of another agent that stands, no turn comes either.
    await _import(stack, export_file(sessions[1]))
    made = await _import(stack, export_file(turns[1]), key=ann)
    assert (made["created"], made["rejected"]) == (0, 1)
    assert b"said to bob" not in await _export(stack)


async def test_a_truncated_or_oversized_upload_changes_nothing(
    database: DatabaseUrls, nats_url: str
) -> None:
    data = export_file(*(memory_line(f"Fact {n}") for n in range(20)))
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
        for path, body, setting in (
            ("/v1/import", data + b"\n" + data, "import_limit"),
            ("/mcp", b" " * ((1 << 20) + 1), "body_limit"),
        ):
            reply = await stack.call("POST", path, data=BytesIO(body), headers=JSONL)
            assert (reply.status, setting in reply.body["detail"]) == (413, True), path
        assert await _export(stack) == before
        assert (await _import(stack, data))["created"] == 20


@pytest.mark.parametrize(
    ("strategy", "content", "outcome"),
    [("merge", "newer", "updated"), ("replace", "newer", "updated"), ("skip", "older", "skipped")],
)
async def test_the_conflict_strategy_decides_which_side_wins(
    stack: Stack, strategy: str, content: str, outcome: str
) -> None:
    old = memory_line("older")
    await _import(stack, export_file(old))
    new = {**old, "content": "newer", "updated": "2026-02-02T03:04:05+00:00"}
    made = await _import(stack, export_file(new), f"?strategy={strategy}")
    assert made[outcome] == 1
    assert (await stack.get(f"/v1/memories/{old['id']}"))["content"] == content
    again = await _import(stack, export_file(new), f"?strategy={strategy}")
    assert again["skipped"] == 1


async def test_a_memory_replaced_by_an_import_was_current_until_then(stack: Stack) -> None:
    old = await stack.post(
        "/v1/remember", {"content": "older", "key": "port", "scope": "project/shop"}
    )
    made = await _import(stack, export_file(memory_line("newer", key="port")), "?strategy=replace")
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
  when (new.content like 'Fact 70 %%') execute function broken()
"""


async def test_an_import_that_broke_off_is_completed_by_the_same_file(
    database: DatabaseUrls, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more than the body of any other request may hold, all of which is exported again."""
    monkeypatch.setattr(jsonl_import, "PAGE_SIZE", 50)
    file = export_file(*(memory_line(f"Fact {number} of many") for number in range(120)))
    settings: dict[str, Any] = {"ingest_role": "api", "body_limit": len(file) // 2}
    async with running_stack(database, nats_url, model_home(), **settings) as stack:
        run(stack.admin_url, BROKEN)
        status, _ = await send_import(stack, BytesIO(file))
        assert status >= 500
        assert value(stack.admin_url, "select count(*) from memory") == 50
        run(stack.admin_url, "drop trigger broken on memory")
        done = await _import(stack, file)
        assert (done["skipped"], done["created"]) == (50, 70)
        out = [one for one in _lines(await _export(stack)) if one["type"] == "memory"]
        assert len(out) == 120


LARGE = """
insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms, confidence, source)
select %s, gen_random_uuid(), 'global', 'context', 'warm', repeat('x', 100000), n::text::bytea, '',
       0, 1, 'test'
from generate_series(1, 700) n
"""


async def test_an_export_names_no_memory_that_the_key_may_not_read(stack: Stack) -> None:
    hidden = memory_line("hidden", scope="project/b")
    shown = memory_line("shown", scope="project/a")
    shown |= {"status": "superseded", "superseded_by": hidden["id"]}
    spread = stale_mark(
        origin=shown["id"], via=["-part_of->", hidden["id"], "-part_of->", str(new_id())]
    )
    shown["stale"] = [stale_mark(origin=hidden["id"], path="src/hidden.ts"), spread]
    past = version_line(shown, state={"scope": "project/b", "superseded_by": hidden["id"]})
    status, body = await send_import(stack, export_file(hidden, shown, past))
    assert (status, body["created"]) == (200, 3)
    reader = stack.key_of(role=KeyRole.READER, reads=("project/a",), writes=())
    exported = await stack.get("/v1/export", key=reader)
    lines = {line.get("id"): line for line in map(json.loads, exported.splitlines())}
    for secret in (hidden["id"], "src/hidden.ts", "memory_version"):
        assert secret not in exported
    line = lines[shown["id"]]
    assert [mark["path"] for mark in line["stale"]] == ["src/a.ts"]
    status, body = await send_import(stack, exported.encode(), key=stack.apart().key)
    assert (status, body["rejected"]) == (200, 0)


async def test_an_export_that_nobody_reads_keeps_no_snapshot(
    database: DatabaseUrls, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_import, "PAGE_SIZE", 100)
    async with running_stack(
        database, nats_url, model_home(), transfer_timeout=0.5, pool_max=4, ingest_role="api"
    ) as stack:
        # Pages of 10 MB, together more than what the sockets of both ends hold: up to 40 MB.
        run(stack.admin_url, LARGE, stack.number())
        headers = {"Authorization": f"Bearer {stack.key}"}
        answer = await stack.http.get(f"{stack.url}/v1/export", headers=headers)

        async def is_released() -> bool:
            query = "select count(*) from pg_stat_activity where backend_xmin is not null"
            query += " and datname = current_database() and pid <> pg_backend_pid()"
            return bool(value(stack.admin_url, query + " and state like 'idle in%%'") == 0)

        await eventually(is_released)
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
        answer.close()

"""Edits, rollbacks, feedback, pins and forgetting, the history, and changes that happen at once."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.types.json import Jsonb

from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import hash_content
from tests.support.import_files import export_file, send_import
from tests.support.stack import Stack, eventually
from tests.support.store_setup import PATH
from tests.support.tables import blocked, rows, value

EDITS: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"content": "Builds run on arm"}, {"content"}),
    ({"tags": ["ci"]}, {"tags"}),
    ({"summary": "arm"}, {"summary"}),
    ({"pinned": True}, {"pinned"}),
    ({"confidence": 0.4}, {"base_confidence"}),
    ({"metadata": {"a": 1}}, {"metadata"}),
    ({"kind": "lesson"}, {"kind"}),
    ({"valid_from": "2026-01-01T00:00:00Z"}, {"valid_from"}),
)
"""Edits, and the fields that each changes."""


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    made = await stack.post("/v1/remember", {"content": content, **fields})
    return str(made["id"])


async def _recall(stack: Stack, query: str, **fields: Any) -> list[str]:
    answer = await stack.post("/v1/recall", {"query": query, **fields})
    assert answer["degraded"] == []
    return [hit["id"] for hit in answer["memories"]]


async def _edit(stack: Stack, one: str, body: Any, **more: Any) -> Any:
    reply = await stack.call("PATCH", f"/v1/memories/{one}", body, **more)
    assert reply.status == 200, reply
    return reply.body


async def test_an_edit_is_versioned_and_a_rollback_restores_content_hash_and_words(
    stack: Stack,
) -> None:
    fields = {"tags": ["retries"], "metadata": {"n": 1}, "valid_to": "2098-01-01T00:00:00Z"}
    one = await _remember(stack, "The gateway retries thrice with backoff", key="gw", **fields)
    first = await stack.get(f"/v1/memories/{one}")
    hashes = "select hash from memory where id = %s"
    before = value(stack.admin_url, hashes, one)
    other = {"tags": ["x"], "metadata": {}, "kind": "bug", "valid_to": "2099-01-01T00:00:00Z"}
    changed = {"content": "The importer streams parquet", "reason": "wrong", **other}
    done = await _edit(stack, one, changed)
    assert (done["version"], done["changed"]) == (2, True)
    assert value(stack.admin_url, hashes, one) != before
    assert await _recall(stack, "parquet") == [one]
    chunks = "select count(*) from chunk c join memory m on m.id = c.memory where m.id = %s"
    await eventually(lambda: _enriched(stack, one))
    back = await stack.post(f"/v1/memories/{one}/rollback", {"version": 1})
    assert back["version"] == 3
    now = await stack.get(f"/v1/memories/{one}")
    for name in ("content", "tags", "kind", "key", "metadata", "valid_to"):
        assert now[name] == first[name], name
    assert value(stack.admin_url, hashes, one) == before
    await eventually(lambda: _enriched(stack, one))
    assert value(stack.admin_url, chunks, one) == 1
    found = await stack.post("/v1/recall", {"query": "gateway backoff"})
    assert found["memories"][0]["id"] == one
    assert "words" in found["memories"][0]["arms"]
    terms = "select count(*) from posting p join memory m using (tenant, doc)"
    terms += " where m.id = %s and term = %s"
    [(parquet,)] = rows(stack.admin_url, "select term_hash('parquet')")
    assert value(stack.admin_url, terms, one, parquet) == 0
    history = (await stack.get(f"/v1/memories/{one}/history"))["items"]
    assert [v["version"] for v in history] == [3, 2, 1]
    assert [v["reason"] for v in history] == ["rolled back to version 1", "wrong", "remembered"]
    assert history[1]["content"] == "The importer streams parquet"
    assert len({v["actor"] for v in history}) == 1
    assert history[0]["actor"].startswith("key ")
    assert history[0]["known_to"] is None
    assert history[2]["known_to"] == history[1]["known_from"]


async def _enriched(stack: Stack, one: str) -> bool:
    query = "select enriched_version = version from memory where id = %s"
    return bool(value(stack.admin_url, query, one))


async def test_an_edit_with_an_old_etag_is_refused_and_changes_nothing(stack: Stack) -> None:
    one = await _remember(stack, "Deploys go out on Tuesdays")
    tag = (await stack.call("GET", f"/v1/memories/{one}")).headers["Etag"]
    body = {"content": "Deploys go out on Mondays"}
    await _edit(stack, one, body, headers={"If-Match": tag})
    late = await stack.call("PATCH", f"/v1/memories/{one}", body, headers={"If-Match": tag})
    assert (late.status, late.body["code"]) == (412, "precondition_failed")
    odd = await stack.call("PATCH", f"/v1/memories/{one}", body, headers={"If-Match": "three"})
    assert (odd.status, odd.body["field"]) == (422, "If-Match")
    same = await _edit(stack, one, body)
    assert (same["version"], same["changed"]) == (2, False)
    back = f"/v1/memories/{one}/rollback"
    late = await stack.call("POST", back, {"version": 2}, headers={"If-Match": tag})
    assert (late.status, late.body["code"]) == (412, "precondition_failed")
    assert (await stack.post(back, {"version": 2}))["changed"] is False


async def test_a_secret_in_an_edit_is_redacted_everywhere(stack: Stack) -> None:
    one = await _remember(stack, "The uploader needs a token")
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    fields = {"tags": [secret], "summary": secret, "metadata": {"env": secret}}
    changed = {"content": f"The uploader uses {secret}", "reason": f"because {secret}", **fields}
    done = await _edit(stack, one, changed)
    assert done["redactions"] == 5
    for table in ("memory", "memory_version", "memory_tag", "outbox"):
        dump = rows(
            stack.admin_url, f"select t::text from {table} t where tenant = %s", stack.number()
        )
        assert secret not in str(dump), table


async def test_a_rollback_to_the_content_of_another_active_memory_names_it(stack: Stack) -> None:
    one = await _remember(stack, "Tests run on two cores")
    await _edit(stack, one, {"content": "Tests run on four cores"})
    other = await _remember(stack, "Tests run on two cores")
    refused = await stack.call("POST", f"/v1/memories/{one}/rollback", {"version": 1})
    assert (refused.status, refused.body["current"]["id"]) == (409, other)
    assert (await stack.get(f"/v1/memories/{one}"))["version"] == 2
    await stack.post(f"/v1/memories/{one}/archive", None)
    assert (await stack.post(f"/v1/memories/{one}/rollback", {"version": 1}))["version"] == 4
    unknown = await stack.call("POST", f"/v1/memories/{one}/rollback", {"version": 9})
    assert unknown.status == 404


async def test_feedback_approves_edits_and_discards(stack: Stack) -> None:
    one = await _remember(stack, "The cache lives in Redis", confidence=0.5)
    await stack.post(f"/v1/memories/{one}/feedback", {"verdict": "approve"})
    stored = "select confidence from memory where id = %s"
    assert value(stack.admin_url, stored, one) == 1.0
    done = await stack.post(
        f"/v1/memories/{one}/feedback", {"verdict": "edit", "content": "The cache lives in Valkey"}
    )
    assert done["version"] == 3
    assert await _recall(stack, "Valkey") == [one]
    bare = await stack.call("POST", f"/v1/memories/{one}/feedback", {"verdict": "edit"})
    assert (bare.status, bare.body["field"]) == (422, "content")
    await stack.post(f"/v1/memories/{one}/feedback", {"verdict": "discard"})
    assert await _recall(stack, "Valkey") == []


async def test_a_memory_can_be_pinned_and_unpinned(stack: Stack) -> None:
    one = await _remember(stack, "Ask before touching the billing tables", kind="reference")
    assert (await stack.call("PUT", f"/v1/memories/{one}/pin")).body["changed"]
    assert "billing tables" in (await stack.get("/v1/context"))["markdown"]
    assert (await stack.call("DELETE", f"/v1/memories/{one}/pin")).body["changed"]
    assert "billing tables" not in (await stack.get("/v1/context"))["markdown"]


async def test_a_key_without_write_access_cannot_change_a_memory(stack: Stack) -> None:
    one = await _remember(stack, "Only writers may change this", scope="project/a")
    for key in (
        stack.key_of(role=KeyRole.READER),
        stack.key_of(role=KeyRole.WRITER, writes=["project/b"]),
    ):
        for method, path, body in (
            ("PATCH", "", {"content": "changed"}),
            ("DELETE", "", None),
            ("PUT", "/pin", None),
            ("POST", "/feedback", {"verdict": "discard"}),
            ("POST", "/rollback", {"version": 1}),
        ):
            reply = await stack.call(method, f"/v1/memories/{one}{path}", body, key=key)
            assert reply.status == 403, (method, path, reply)
    hidden = stack.key_of(role=KeyRole.WRITER, reads=["project/b"])
    reply = await stack.call("DELETE", f"/v1/memories/{one}", key=hidden)
    assert reply.status == 404
    assert (await stack.get(f"/v1/memories/{one}"))["version"] == 1


async def test_as_of_answers_with_the_knowledge_of_that_moment(stack: Stack) -> None:
    cause = await _remember(stack, "The queue lost messages on restart", kind="bug")
    edges = [{"to": cause, "type": "led_to"}]
    edited = await _remember(stack, "Streams have one replica", key="replicas", edges=edges)
    forgotten = await _remember(stack, "The queue is Redis pubsub", edges=edges)
    then = datetime.now(UTC).isoformat()
    await _edit(stack, edited, {"content": "Streams have three replicas"})
    await stack.call("DELETE", f"/v1/memories/{forgotten}")
    old = await stack.get(f"/v1/memories/{edited}", params={"as_of": then})
    found = (old["content"], old["key"], old["version"])
    assert found == ("Streams have one replica", "replicas", 1)
    past = await stack.call("GET", f"/v1/memories/{forgotten}", params={"as_of": then})
    assert past.status == 404
    around = await stack.get(f"/v1/memories/{edited}", params={"as_of": then})
    assert [(n["id"], n["type"]) for n in around["neighbours"]] == [(cause, "led_to")]
    answer = await stack.post("/v1/recall", {"query": "queue Redis messages", "as_of": then})
    assert answer["search_mode"] == "words"
    assert {hit["id"] for hit in answer["memories"]} == {edited, cause}
    assert [(e["from"], e["to"]) for e in answer["edges"]] == [(edited, cause)]
    replica = await stack.post("/v1/recall", {"query": "one replica", "as_of": then})
    assert replica["memories"][0]["content"] == "Streams have one replica"
    assert forgotten not in await _recall(stack, "Redis pubsub")
    early = await stack.call(
        "GET", f"/v1/memories/{edited}", params={"as_of": "2020-01-01T00:00:00Z"}
    )
    assert early.status == 404


async def test_valid_at_answers_with_what_was_true_then(stack: Stack) -> None:
    old = await _remember(
        stack,
        "Releases are cut by hand",
        valid_from="2024-01-01T00:00:00Z",
        valid_to="2025-01-01T00:00:00Z",
    )
    new = await _remember(
        stack, "Releases are cut by the pipeline", valid_from="2025-01-01T00:00:00Z"
    )
    for moment, expected in (("2024-06-01T00:00:00Z", old), ("2025-06-01T00:00:00Z", new)):
        assert await _recall(stack, "releases are cut", valid_at=moment) == [expected]
        listed = await stack.get("/v1/memories", params={"valid_at": moment})
        assert [m["id"] for m in listed["items"]] == [expected]


async def test_a_soft_supersede_needs_no_reason_and_keeps_confidence(stack: Stack) -> None:
    old = await _remember(stack, "Adress of the API", key="api", pinned=True, confidence=0.95)
    new = await stack.post(
        "/v1/remember", {"content": "Address of the API", "key": "api", "soft": True}
    )
    assert new["status"] == "superseded"
    found = await stack.get(f"/v1/memories/{new['id']}")
    assert found["pinned"] is True
    stored = "select round(confidence::numeric, 2)::float8 from memory where id = %s"
    assert value(stack.admin_url, stored, new["id"]) == pytest.approx(0.95)
    meta = "select meta from edge where src = %s and dst = %s"
    expected = {"reason": "minor correction", "soft": True}
    assert value(stack.admin_url, meta, new["id"], old) == expected
    origin = await stack.get(f"/v1/memories/{new['id']}/provenance")
    assert [one["id"] for one in origin["replaced"]] == [old]
    past = await stack.get(f"/v1/memories/{old}/history")
    assert [(v["reason"], v["actor"][:4]) for v in past["items"]] == [
        ("minor correction", "key "),
        ("remembered", "key "),
    ]
    ended = (await stack.get(f"/v1/memories/{old}"))["valid_to"]
    assert ended
    edited = await _edit(stack, old, {"content": "We decided to move the API", "kind": "decision"})
    assert not any("reads like" in hint for hint in edited["hints"])
    await stack.post(f"/v1/memories/{old}/rollback", {"version": 1})
    back = await stack.get(f"/v1/memories/{old}")
    assert (back["status"], back["valid_to"]) == ("superseded", ended)
    keyless = await stack.call("POST", "/v1/remember", {"content": "no key here", "soft": True})
    assert (keyless.status, keyless.body["field"]) == (422, "soft")


async def test_provenance_leads_back_to_session_and_turn(stack: Stack) -> None:
    start = {"agent": "coder", "project": "app"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    said = "We decided to use Valkey instead of Redis because of its licence."
    turns = [{"role": "user", "content": said}]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    await stack.post(f"/v1/sessions/{session}/end", {})

    async def dreamt() -> str | None:
        listed = await stack.get("/v1/memories", params={"session": session, "kind": "decision"})
        return listed["items"][0]["id"] if listed["items"] else None

    one = await eventually(dreamt)
    origin = await stack.get(f"/v1/memories/{one}/provenance")
    assert (origin["source"], origin["agent"]) == ("dream", "coder")
    assert origin["session"]["id"] == session
    assert [turn["content"] for turn in origin["turns"]] == [said]


async def test_line_ranges_of_a_file_are_stored_with_the_memory(stack: Stack) -> None:
    git = {"files": ["./src/a.py"], "lines": {"./src/a.py": [[3, 9]]}, "commit": "a" * 40}
    made = await _remember(stack, "a rule", git=git)
    stored = (await stack.get(f"/v1/memories/{made}"))["provenance"]["git"]
    assert (stored["files"], stored["lines"]) == (["src/a.py"], {"src/a.py": [[3, 9]]})


async def test_an_edit_changes_what_it_names_and_nothing_else(stack: Stack) -> None:
    fields = {"tags": ["build"], "summary": "x86", "metadata": {"b": 2}, "confidence": 0.7}
    one = await _remember(stack, "Builds run on x86", kind="decision", key="build", **fields)
    for body, changed in EDITS:
        await eventually(lambda: _enriched(stack, one))
        before = await stack.get(f"/v1/memories/{one}")
        await _edit(stack, one, body)
        after = await stack.get(f"/v1/memories/{one}")
        differing = {name for name in before if before[name] != after[name]}
        assert differing - {"version", "updated_at", "neighbours", "confidence"} == changed, body


async def _while_locked(stack: Stack, memory: str, change: dict[str, Any], late: Any) -> Any:
    """The answer of the request `late`, which came during another change of the memory."""
    sql = """
    select memory_change(%s, t.name, %s, '{*}', '{*}', null, %s, 'other', 'first', 'edited', '{}',
                         false)
    from tenant t where t.id = %s
    """
    with psycopg.connect(stack.admin_url, options=PATH) as connection:
        number = stack.number()
        connection.execute(sql, [number, memory, Jsonb(change), number])
        reply = asyncio.create_task(late)
        await eventually(lambda: blocked(stack.admin_url))
        connection.commit()
        return await reply


async def test_a_change_of_tags_keeps_the_content_that_was_written_meanwhile(stack: Stack) -> None:
    one = await _remember(stack, "The gateway retries thrice", tags=["old"])
    text = "The importer streams parquet"
    first = {"content": text, "hash": "\\x" + hash_content(text), "index_text": text}
    tags = stack.call("PATCH", f"/v1/memories/{one}", {"tags": ["columnar"]})
    done = await _while_locked(stack, one, first, tags)
    assert (done.status, done.body["version"]) == (200, 3)
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["content"], now["tags"]) == (text, ["columnar"])
    assert await _recall(stack, "parquet") == [one]
    assert await _recall(stack, "columnar") == [one]


async def test_a_rollback_follows_what_was_written_meanwhile(stack: Stack) -> None:
    one = await _remember(stack, "Deploys go out on Mondays")
    await _edit(stack, one, {"content": "Deploys go out on Tuesdays"})
    back = stack.call("POST", f"/v1/memories/{one}/rollback", {"version": 1})
    done = await _while_locked(stack, one, {"pinned": True}, back)
    assert (done.status, done.body["version"]) == (200, 4)
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["content"], now["pinned"]) == ("Deploys go out on Mondays", True)


async def test_the_etag_follows_all_that_a_reader_can_see(stack: Stack) -> None:
    one = await _remember(stack, "Logs are JSON lines", confidence=0.5)
    other = await _remember(stack, "Logs go to stdout")
    await eventually(lambda: _enriched(stack, one))
    path = f"/v1/memories/{one}"

    async def tag() -> str:
        return str((await stack.call("GET", path)).headers["Etag"])

    seen = [await tag()]
    again = await stack.call("GET", path, headers={"If-None-Match": seen[0]})
    assert again.status == 304
    for change in (
        {"content": "Logs are JSON lines", "confidence": 0.5},
        {"content": "Logs are JSON lines", "tags": ["logs"]},
        {"content": "Logs are JSON lines", "pinned": True},
        {"content": "Logs are JSON lines", "metadata": {"owner": "ops"}},
    ):
        assert (await stack.post("/v1/remember", change))["status"] == "duplicate"
        seen.append(await tag())
    await stack.post("/v1/links", {"from": one, "to": other, "type": "depends_on"})
    seen.append(await tag())
    assert len(set(seen)) == len(seen)
    stale = await stack.call("PATCH", path, {"pinned": False}, headers={"If-Match": seen[0]})
    assert stale.status == 412
    await _edit(stack, one, {"pinned": False}, headers={"If-Match": seen[-1]})


async def test_what_an_import_adds_to_a_memory_is_a_version(stack: Stack) -> None:
    one = await _remember(stack, "Logs rotate daily", confidence=0.5, tags=["logs"])
    first = await stack.get(f"/v1/memories/{one}")
    _, *lines = (await stack.get("/v1/export")).splitlines()
    [memory] = [json.loads(line) for line in lines if json.loads(line)["type"] == "memory"]
    other = {**memory, "id": str(new_id()), "tags": ["logs", "ops"], "confidence": 0.9}
    assert (await send_import(stack, export_file(other), "?strategy=merge"))[0] == 200
    now = await stack.get(f"/v1/memories/{one}")
    assert (now["tags"], now["version"]) == (["logs", "ops"], first["version"] + 1)
    before = await stack.get(f"/v1/memories/{one}?as_of={quote(first['updated_at'])}")
    assert (before["tags"], before["base_confidence"]) == (["logs"], first["base_confidence"])
    assert (await send_import(stack, export_file(other), "?strategy=merge"))[0] == 200
    assert (await stack.get(f"/v1/memories/{one}"))["version"] == first["version"] + 1

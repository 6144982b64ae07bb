"""What the memory model promises across services: redaction, forgetting, writers, scope names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.bus.erasure import tenant_subjects
from reverie.bus.nats_bus import connect
from tests.support.stack import Stack
from tests.support.tables import rows, value

HERE = "project/shop"


async def _remember(stack: Stack, content: str, key: str | None = None, **fields: Any) -> str:
    body = {"content": content, "scope": HERE, **fields}
    return str((await stack.post("/v1/remember", body, key=key))["id"])


async def _found(stack: Stack, query: str, key: str | None = None, **fields: Any) -> set[str]:
    answer = await stack.post("/v1/recall", {"query": query, **fields}, key=key)
    return {hit["id"] for hit in answer["memories"]}


async def test_credentials_in_a_content_are_redacted_in_reply_row_event_and_log(
    stack: Stack, capfd: pytest.CaptureFixture[str], caplog: Any
) -> None:
    secrets = ("sk-proj-" + "a1B2c3D4e5F6g7H8" * 3, "AKIA" + "IOSFODNN7ABCDEFG")
    body = {"content": f"deploy with {secrets[0]} and {secrets[1]}", "scope": HERE}
    tenant = stack.number()
    assert stack.settings.nats_url
    with caplog.at_level("DEBUG"):
        made = await stack.call("POST", "/v1/remember", body)
        read = await stack.get(f"/v1/memories/{made.body['id']}")
        outbox = "select t::text from outbox t where tenant = %s"
        events = [row[0] for row in rows(stack.admin_url, outbox, tenant)]
        await stack.settled()
    async with connect(stack.settings.nats_url.get_secret_value(), "test") as bus:
        await bus.wait_connected(30)
        for stream, subject in tenant_subjects(stack.tenant):
            message = await bus.read(stream, 1, subject)
            events += [] if message is None else [repr(message)]
    row = rows(stack.admin_url, "select t::text from memory t where tenant = %s", tenant)
    log = (*capfd.readouterr(), caplog.text)
    assert read["content"].count("[REDACTED_") == 2
    assert made.body["id"] in str(events)
    for secret in secrets:
        assert secret not in str((made, read, row, events, log))


async def test_a_forgotten_memory_is_in_no_subgraph(stack: Stack) -> None:
    near = await _remember(stack, "Kafka was replaced by NATS")
    gone = await _remember(stack, "NATS keeps streams", edges=[{"to": near, "type": "relates_to"}])
    picture = await stack.get(f"/v1/memories/{near}/subgraph?depth=5")
    assert {near, gone} <= {one["id"] for one in picture["nodes"]}
    assert (await stack.call("DELETE", f"/v1/memories/{gone}")).status == 200
    left = await stack.get(f"/v1/memories/{near}/subgraph?depth=5")
    assert near in {one["id"] for one in left["nodes"]}
    assert gone not in str(left)
    assert (await stack.call("GET", f"/v1/memories/{gone}/subgraph")).status == 404


async def test_five_writers_of_ten_memories_beside_readers_leave_fifty(stack: Stack) -> None:
    async def write(writer: int) -> list[str]:
        return [await _remember(stack, f"writer {writer} says fact {n}") for n in range(10)]

    async def read() -> None:
        for _ in range(5):
            await _found(stack, "fact of a writer")
            await stack.get("/v1/memories")

    written = await asyncio.gather(*(write(n) for n in range(5)), read(), read())
    ids = {one for found in written if found for one in found}
    listed = await stack.get("/v1/memories?limit=200")
    assert len(ids) == 50
    assert {one["id"] for one in listed["items"]} == ids


async def test_branches_of_one_name_in_two_projects_are_separate_and_any_name_works(
    stack: Stack,
) -> None:
    scopes = []
    for project in ("a", "b"):
        start = {"agent": "x", "project": project, "branch": "feature/login"}
        scopes.append((await stack.post("/v1/sessions/start", start))["scope"])
    a, b = [await _remember(stack, f"login by wombat in {one}", scope=one) for one in scopes]
    assert scopes[0] != scopes[1]
    assert await _found(stack, "wombat login", scopes=scopes[:1]) == {a}
    assert await _found(stack, "wombat login", scopes=scopes[1:]) == {b}
    start = {"agent": "x", "project": "a", "branch": "feat/login.v2"}
    odd = await stack.post("/v1/sessions/start", start)
    scope, session = odd["scope"], odd["session"]
    assert scope.startswith("project/a/feature/feat-login-v2-")
    one = await _remember(stack, "the numbat form", scope=scope, session=session)
    listed = await stack.get("/v1/memories", params={"scope": scope})
    assert [memory["id"] for memory in listed["items"]] == [one]
    assert one in await _found(stack, "numbat form", session=session)
    assert "numbat" in (await stack.get("/v1/context", params={"session": session}))["markdown"]
    await _named_at_every_door(stack, scope, "project/a/feature/feat/login.v2", one)
    await _name_goes_where_its_scope_goes(stack, scope)


async def _named_at_every_door(stack: Stack, scope: str, named: str, one: str) -> None:
    same = {"content": "the numbat form", "scope": named}
    assert (await stack.post("/v1/remember", same))["id"] == one
    assert (await stack.post("/v1/remember/batch", {"items": [same]}))["items"][0]["id"] == one
    assert await _found(stack, "numbat form", scopes=[named]) == {one}
    for door in ("/v1/memories", "/v1/tasks", "/v1/facts", "/v1/stale"):
        await stack.get(door, params={"scope": named})
    assert [m["id"] for m in (await stack.get("/v1/memories", params={"scope": named}))["items"]]
    assert "numbat" in (await stack.get("/v1/context", params={"scopes": named}))["markdown"]
    assert (await stack.get("/v1/graph/stats", params={"scope": named}))["memories"] == 1
    claim = {"topic": "t", "statement": "c", "confidence": "high", "verified": "2026-01-01"}
    claimed = await stack.post("/v1/facts", {**claim, "scope": named})
    assert (await stack.get(f"/v1/memories/{claimed['id']}"))["scope"] == scope
    put = await stack.call("PUT", "/v1/vault/port", {"value": 1}, params={"scope": named})
    assert put.body["scope"] == scope
    assert (await stack.post("/v1/dream", {"scope": named}))["scope"] == scope
    made = await stack.post(
        "/v1/admin/keys", {"label": "k", "reads": [named, "topic/Ä/*"], "project": "My Shop"}
    )
    assert made["reads"][0] == scope
    assert one in await _found(stack, "numbat form", made["key"])
    for wrong in (
        "project/a/feature/feat/*",
        "project/a/feat/login.v2",
        "user/a/b",
        "feature/a//b",
    ):
        refused = await stack.call("POST", "/v1/remember", {"content": "x", "scope": wrong})
        assert (refused.status, refused.body["field"]) == (422, "scope"), wrong


async def _name_goes_where_its_scope_goes(stack: Stack, scope: str) -> None:
    listed = (await stack.get("/v1/admin/scopes"))["items"]
    assert (scope, "feat/login.v2") in {(one["scope"], one["name"]) for one in listed}
    await _remember(stack, "the shop", scope="project/My Shop")
    projects = (await stack.get("/v1/admin/projects"))["items"]
    assert "My Shop" in {one["name"] for one in projects}
    other = stack.apart().key
    auth = {"Authorization": f"Bearer {other}"}
    for form, kind in (("jsonl", "application/x-ndjson"), ("markdown", "application/x-tar")):
        url, mine = f"{stack.url}/v1/export?format={form}", f"Bearer {stack.key}"
        async with stack.http.get(url, headers={"Authorization": mine}) as answer:
            data = await answer.read()
        assert b"feat/login.v2" in data
        head = {**auth, "Content-Type": kind}
        async with stack.http.post(f"{stack.url}/v1/import", data=data, headers=head) as answer:
            assert (await answer.json())["rejected"] == 0, await answer.text()
        carried = (await stack.get("/v1/admin/scopes", key=other))["items"]
        assert (scope, "feat/login.v2") in {(one["scope"], one["name"]) for one in carried}
        gone = await stack.call(
            "DELETE",
            "/v1/admin/scopes",
            key=other,
            params={"scope": "project/a/feature/feat/login.v2"},
        )
        assert gone.body["rows"]["scope_name"] == 1, gone
    kept = "select count(*) from scope_name where name = 'feat/login.v2' and tenant = %s"
    assert value(stack.admin_url, kept, stack.number()) == 1

"""The audit log records reads and changes through every interface."""

from __future__ import annotations

import json
from typing import Any

import grpc
import psycopg

from reverie.contracts import reverie_pb2 as pb
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.domain.access.principals import KeyRole
from reverie.embedded.ports import find_free_port
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.commands import command
from tests.support.dead_letters import bury
from tests.support.mcp_clients import call, over_http
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import rows, value

AUDIT = "/v1/admin/audit"
CONTENT = "The weir is opened when the gauge stands above two metres"
TOKEN = "ghp_" + "a1B2" * 9


async def test_changes_and_reads_are_audited_at_every_interface(
    database: DatabaseUrls, nats_url: str
) -> None:
    port = find_free_port()
    options = {"audit_mode": "all", "grpc_enabled": True, "grpc_port": port}
    async with running_stack(database, nats_url, model_home(), **options) as stack:
        ann = stack.key_of(agent="ann")
        memory = {"content": CONTENT, "scope": "project/weir"}
        made = (await stack.post("/v1/remember", memory, key=ann))["id"]
        # What changed something is noted before the reply: it is there without waiting.
        [note] = await _notes(stack, subject=made)
        assert (note["action"], note["actor"], note["status"]) == ("POST /v1/remember", "ann", 201)
        assert (note["service"], note["changes"], note["problem"]) == ("ingest", True, None)
        assert note["subjects"] == [made]
        assert len(note["trace_id"]) == 32
        await _reads_by_every_door(stack, ann, made, port)
        await _refusals_are_noted(stack, ann, made)
        await _replays_are_noted(stack)
        await _pages_and_filters(stack)
        await _only_administrators_of_the_tenant_see_it(stack, ann)
        await _the_command_shows_it(stack, made)
        await _it_outlives_what_it_tells_of(stack, made)
        held = str(rows(stack.admin_url, "select a::text from audit a"))
        assert "weir is opened" not in held
        assert TOKEN not in held


async def _notes(stack: Stack, **query: Any) -> list[dict[str, Any]]:
    asked = "&".join(f"{name}={one}" for name, one in query.items())
    found: list[dict[str, Any]] = (await stack.get(f"{AUDIT}?limit=200&{asked}"))["items"]
    return found


async def _replays_are_noted(stack: Stack) -> None:
    number = await bury(stack)
    await stack.post(f"/v1/admin/dead-letters/{number}/replay", None)
    [note] = await _notes(stack, action="/dead-letters/", changes="true")
    assert note["action"] == "POST /v1/admin/dead-letters/{seq}/replay"
    assert note["subjects"] == [str(number)]


async def _reads_by_every_door(stack: Stack, ann: str, made: str, port: int) -> None:
    query = "when is the weir opened"
    await stack.post("/v1/recall", {"query": query}, key=ann)
    async with over_http(f"{stack.url}/mcp", ann) as client:
        await call(client, "recall", query=query)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = ReverieStub(channel)
        key = (("authorization", f"Bearer {ann}"),)
        await stub.Recall(pb.RecallRequest(query=query), metadata=key)

    async def noted() -> list[dict[str, Any]]:
        found = await _notes(stack, actor="ann", changes="false", subject=made)
        return found if len(found) == 3 else []

    found = await eventually(noted)
    assert {one["action"] for one in found} == {"POST /v1/recall"}
    assert all(made in one["subjects"] for one in found)
    assert not await _notes(stack, action="mcp")


async def _refusals_are_noted(stack: Stack, ann: str, made: str) -> None:
    reader = stack.key_of(role=KeyRole.READER)
    refused = await stack.call("DELETE", f"/v1/memories/{made}", key=reader)
    assert refused.status == 403
    headers = {"User-Agent": f"weir-tool {TOKEN}"}
    await stack.call("DELETE", f"/v1/vault/{TOKEN}", key=ann, headers=headers)
    found = await _notes(stack, action="DELETE")
    assert {(one["status"], one["problem"]) for one in found} >= {(403, "forbidden")}
    [named] = [one for one in found if "vault" in one["action"]]
    assert named["client"].startswith("weir-tool")


async def _pages_and_filters(stack: Stack) -> None:
    everything = await _notes(stack)
    ids = [one["id"] for one in everything]
    assert ids == sorted(ids, reverse=True)
    first = await stack.get(f"{AUDIT}?limit=2")
    second = await stack.get(f"{AUDIT}?limit=2&cursor={first['next']}")
    assert first["items"][-1]["id"] > second["items"][0]["id"]
    assert {one["changes"] for one in await _notes(stack, changes="true")} == {True}
    assert await _notes(stack, since="2099-01-01T00:00:00Z") == []
    assert await _notes(stack, until="2001-01-01T00:00:00Z") == []
    bad = await stack.call("GET", f"{AUDIT}?changes=maybe")
    assert (bad.status, bad.body["field"]) == (422, "changes")


async def _only_administrators_of_the_tenant_see_it(stack: Stack, ann: str) -> None:
    assert (await stack.call("GET", AUDIT, key=ann)).status == 403
    narrow = stack.key_of(role=KeyRole.ADMIN, reads=["project/weir"], writes=["project/weir"])
    assert (await stack.call("GET", AUDIT, key=narrow)).status == 403
    other = stack.key_of(role=KeyRole.ADMIN, tenant="others")
    assert (await stack.get(AUDIT, key=other))["items"] == []


async def _the_command_shows_it(stack: Stack, made: str) -> None:
    env = {"REVERIE_DATABASE_URL": stack.admin_url}
    words = ["admin", "audit", "--subject", made, "--since", "1h"]
    code, entries, errors = await command(env, *words, "--json")
    assert code == 0, errors
    assert {entry["actor"] for entry in json.loads(entries)} >= {"ann"}
    _, shown, _ = await command(env, *words, "--changes")
    assert "POST /v1/remember" in shown
    assert made[-8:] in shown


async def _it_outlives_what_it_tells_of(stack: Stack, made: str) -> None:
    before = value(stack.admin_url, "select count(*) from audit")
    assert (await stack.call("DELETE", "/v1/admin/projects/weir")).status == 200
    assert value(stack.admin_url, "select count(*) from audit") > before
    assert await _notes(stack, subject=made)
    rows(stack.admin_url, "update audit set at = at - interval '400 days' returning 1")
    assert (
        value(stack.admin_url, "select reverie.delete_old_rows('audit', interval '365 days')")
        >= before
    )
    assert not await _notes(stack, until="2099-01-01T00:00:00Z", action="remember")


async def test_the_audit_log_contains_only_what_is_configured(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), audit_mode="writes") as stack:
        made = (await stack.post("/v1/remember", {"content": CONTENT}))["id"]
        await stack.post("/v1/recall", {"query": "weir"})
        await stack.call("DELETE", f"/v1/memories/{made}")
        kept = rows(stack.admin_url, "select action, changes from audit order by id")
        assert kept == [("POST /v1/remember", True), ("DELETE /v1/memories/{id}", True)]
        # A note that cannot be kept is told, and takes nothing back.
        with psycopg.connect(stack.admin_url) as connection:
            connection.execute("revoke insert on reverie.audit from reverie_app")
        assert (await stack.post("/v1/remember", {"content": f"{CONTENT}."}))["id"]
        async with stack.http.get(stack.urls["ingest"] + "/metrics") as answer:
            assert "reverie_audit_lost_total 1.0" in await answer.text()
    async with running_stack(database, nats_url, model_home()) as stack:
        await stack.post("/v1/remember", {"content": f"{CONTENT}!"})
        assert value(stack.admin_url, "select count(*) from audit") == 2

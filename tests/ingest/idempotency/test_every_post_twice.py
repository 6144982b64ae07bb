"""Every POST sent twice under one idempotency key takes effect once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from reverie.domain.core.ids import new_id
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.routes.export import JSONL_HEADER
from tests.ingest.export_import.test_jsonl_files import _memory as record
from tests.staleness.test_http_intake import pushed
from tests.support.dead_letters import bury
from tests.support.stack import Reply, Stack, running_stack
from tests.support.tables import rows, value

PICTURE = "R0lGODlhAQABAAAAACw="
SECRET = "a-secret-of-a-webhook"
VAULT_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NOTES = (
    "The pier is wet in the morning",
    "Money is kept in integer cents",
    "Deploys go out on Tuesdays",
    "Postgres runs on port 5433 here",
    "Screenshots live in the attic",
)
CLAIM = {
    "topic": "rope",
    "statement": "Hemp shrinks",
    "confidence": "high",
    "verified": "2026-01-01",
}
Case = tuple[str, dict[str, Any]]


@pytest.fixture
async def shop(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    settings = {"vault_key": SecretStr(VAULT_KEY)}
    async with running_stack(database, nats_url, model_home(), **settings) as made:
        yield made


async def _cases(stack: Stack) -> dict[str, Case]:
    """For each route an address and what is sent there, which succeeds once."""
    note, other, old, *judged = [await _kept(stack, one) for one in NOTES]
    away, gone = [await _kept(stack, f"Pier {n} is closed") for n in range(2)]
    task, taken = [await _kept(stack, f"Paint pier {n}", kind="task") for n in range(2)]
    await stack.post(f"/v1/tasks/{taken}/claim", {"agent": "ann"})
    put_away = "update memory set status = 'archived' where id = %s returning id"
    await asyncio.to_thread(rows, stack.admin_url, put_away, old)
    reviews = [await asyncio.to_thread(_review, stack, one) for one in judged]
    start = {"agent": "ann", "project": "shop"}
    first, second = [(await stack.post("/v1/sessions/start", start))["session"] for _ in "ab"]
    asked = {"session": second, "query": "piers"}
    given = (await stack.post("/v1/preflow", asked))["trace_id"]
    key = (await stack.post("/v1/admin/keys", {"label": "old"}))["id"]
    commit = {"sha": "f" * 40, "subject": "s", "committed_at": "2026-01-01T00:00:00Z"}
    change = {"project": "shop", "branch": "main", "after": "f" * 40, "commits": [commit]}
    anchors = [{"memory": note, "git": {"lines": {"src/pier.py": [[1, 2]]}}}]
    turn = {"role": "user", "content": "We moor at the north side"}
    tool = {"name": "remember", "arguments": {"content": "Gulls nest on the roof"}}
    called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    return {
        "POST /mcp": ("/mcp", _json(called)),
        "POST /v1/admin/keys": ("/v1/admin/keys", _json({"label": "mine"})),
        "POST /v1/admin/dead-letters/{seq}/replay": (
            f"/v1/admin/dead-letters/{await bury(stack)}/replay", {}),
        "POST /v1/admin/keys/{id}/rotate": (f"/v1/admin/keys/{key}/rotate", {}),
        "POST /v1/documents": (
            "/v1/documents",
            _json({"collection": "log", "documents": [{"key": "a", "value": 1}]})),
        "POST /v1/documents/delete": ("/v1/documents/delete", _json({"collection": "log"})),
        "POST /v1/memories/forget": (
            "/v1/memories/forget", _json({"scope": "project/shop", "keys": ["nothing"]})),
        "POST /v1/facts": ("/v1/facts", _json(CLAIM)),
        "POST /v1/dream": ("/v1/dream", _json({"scope": "project/shop"})),
        "POST /v1/maintenance/run": ("/v1/maintenance/run?steps=archive", {}),
        "POST /v1/git/anchors": (
            "/v1/git/anchors", _json({"project": "shop", "anchors": anchors})),
        "POST /v1/git/changes": ("/v1/git/changes", _json(change)),
        "POST /v1/git/github/{tenant}/{project}": await _github(stack),
        "POST /v1/git/gitlab/{tenant}/{project}": await _gitlab(stack),
        "POST /v1/import": ("/v1/import", {"data": _file(record("Boats leave at noon"))}),
        "POST /v1/links": (
            "/v1/links", _json({"from": note, "to": other, "type": "relates_to"})),
        "POST /v1/memories/{id}/archive": (f"/v1/memories/{away}/archive", {}),
        "POST /v1/memories/{id}/erase": (f"/v1/memories/{gone}/erase", {}),
        "POST /v1/memories/{id}/confirm": (f"/v1/memories/{note}/confirm", {}),
        "POST /v1/memories/{id}/feedback": (
            f"/v1/memories/{note}/feedback", _json({"verdict": "approve"})),
        "POST /v1/memories/{id}/pictures": (
            f"/v1/memories/{note}/pictures", _json({"data": PICTURE, "text": "A pier"})),
        "POST /v1/memories/{id}/restore": (f"/v1/memories/{old}/restore", {}),
        "POST /v1/memories/{id}/rollback": await _edited(stack, other),
        "POST /v1/preflow": ("/v1/preflow", _json({"session": first, "query": "piers"})),
        "POST /v1/predict": ("/v1/predict", _json({"session": first})),
        "POST /v1/recall/projects": ("/v1/recall/projects", _json({"query": "piers"})),
        "POST /v1/recall": ("/v1/recall", _json({"query": "piers"})),
        "POST /v1/remember": ("/v1/remember", _json({"content": "Lamps are lit at dusk"})),
        "POST /v1/remember/batch": (
            "/v1/remember/batch", _json({"items": [{"content": "Oil is below"}]})),
        "POST /v1/reviews/{id}/accept": (f"/v1/reviews/{reviews[0]}/accept", {}),
        "POST /v1/reviews/{id}/reject": (f"/v1/reviews/{reviews[1]}/reject", {}),
        "POST /v1/sessions/start": ("/v1/sessions/start", _json(start)),
        "POST /v1/sessions/{id}/correct": (
            f"/v1/sessions/{first}/correct", _json({"diff": "No longer oil, use gas"})),
        "POST /v1/sessions/{id}/end": (f"/v1/sessions/{second}/end", _json({"summary": "Done"})),
        "POST /v1/tasks/{id}/claim": (f"/v1/tasks/{task}/claim", _json({"agent": "bob"})),
        "POST /v1/tasks/{id}/release": (f"/v1/tasks/{taken}/release", _json({"agent": "ann"})),
        "POST /v1/traces/{id}/delivery": (f"/v1/traces/{given}/delivery", {}),
        "POST /v1/turns": ("/v1/turns", _json({"session": first, "turns": [turn]})),
    }  # fmt: skip


def _json(body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return {"data": json.dumps(body), "headers": headers}


def _file(*lines: dict[str, Any]) -> str:
    return "\n".join([JSONL_HEADER, *map(json.dumps, lines)])


async def _kept(stack: Stack, content: str, **more: Any) -> str:
    body = {"content": content, "scope": "project/shop", **more}
    return str((await stack.post("/v1/remember", body))["id"])


async def _edited(stack: Stack, memory: str) -> Case:
    await stack.call("PATCH", f"/v1/memories/{memory}", {"content": "The pier is dry"})
    return f"/v1/memories/{memory}/rollback", _json({"version": 1})


def _review(stack: Stack, memory: str) -> str:
    made = rows(
        stack.admin_url,
        "insert into review (tenant, id, memory, version, verdict, reason, author, seen)"
        " values (1, %s, %s, 1, 'gone', 'it is gone', 'stub', now()) returning id",
        new_id(),
        memory,
    )
    return str(made[0][0])


async def _github(stack: Stack) -> Case:
    made = await stack.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    data = json.dumps(pushed()).encode()
    signature = hmac.new(SECRET.encode(), data, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature}"}
    return made.body["path"], {"data": data, "headers": {**headers, "X-GitHub-Delivery": "guid-1"}}


async def _gitlab(stack: Stack) -> Case:
    made = await stack.call("PUT", "/v1/git/webhooks/gitlab/shop", {"secret": SECRET})
    pushes = pushed(ref="refs/heads/dev", checkout_sha="e" * 40, project={"default_branch": "main"})
    headers = {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET}
    return made.body["path"], {"data": json.dumps(pushes), "headers": headers}


async def _send(stack: Stack, case: Case, key: str) -> Reply:
    path, sent = case
    headers = {**sent.get("headers", {})}
    if "X-GitHub-Delivery" not in headers:
        headers["Idempotency-Key"] = key
    return await stack.call("POST", path, **{**sent, "headers": headers})


async def test_every_post_takes_effect_once_under_one_key(shop: Stack) -> None:
    cases = await _cases(shop)
    names = {one.name for table in shop.routes.values() for one in table if one.method == "POST"}
    assert names == set(cases)
    for name, case in cases.items():
        first, second = [await _send(shop, case, f"key of {name}") for _ in "ab"]
        assert first.status < 300, (name, first)
        assert (second.status, _told(second)) == (first.status, _told(first)), name
        if name != "POST /mcp":
            assert second.headers.get("Idempotent-Replayed") == "true", name
        if name in {"POST /mcp", "POST /v1/git/github/{tenant}/{project}"}:
            continue
        path, sent = case
        longer = {**sent, "data": f"{sent.get('data', '')} "}
        refused = await _send(shop, (path, longer), f"key of {name}")
        assert refused.body["code"] == "idempotency_mismatch", (name, refused)
    gulls = "select count(*) from memory where content like 'Gulls nest%%'"
    assert value(shop.admin_url, gulls) == 1


def _told(reply: Reply) -> Any:
    """What came back, without what is told of a call of its own."""
    return {name: one for name, one in (reply.body or {}).items() if name != "trace_id"}


async def test_a_repeated_import_is_compared_with_the_first_upload(
    stack: Stack,
) -> None:
    line = record("Boats leave at noon")
    headers = {"Idempotency-Key": "file-1"}

    async def send(*lines: dict[str, Any], path: str = "/v1/import") -> Reply:
        return await stack.call("POST", path, data=_file(*lines), headers=headers)

    refused = await stack.call(
        "POST", "/v1/import", data=b"\xff", headers={**headers, "Content-Type": "text/markdown"}
    )
    assert refused.status == 400
    assert (await send(line)).body["created"] == 1
    again = await send(line)
    assert (again.body["created"], again.headers["Idempotent-Replayed"]) == (1, "true")
    for other in (await send(line, line), await send(line, path="/v1/import?dry_run=true")):
        assert (other.status, other.body["code"]) == (422, "idempotency_mismatch")

"""Every POST sent twice under one idempotency key takes effect once."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from tests.ingest.idempotency.changing_call import BY_NAME
from tests.ingest.idempotency.changing_calls import RECIPES
from tests.staleness.test_http_intake import pushed
from tests.support.dead_letters import bury
from tests.support.import_files import export_file, memory_line
from tests.support.stack import Reply, Stack
from tests.support.tables import value

SECRET = "a-secret-of-a-webhook"
DELIVERED = "POST /v1/git/github/{tenant}/{project}"
"""GitHub numbers its deliveries itself."""
Call = tuple[str, dict[str, Any]]


async def _make_calls(stack: Stack) -> dict[str, Call]:
    """For each route that is no operation of `RECIPES`, an address and what is sent there."""
    start = {"agent": "ann", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    question = _json({"query": "piers"})
    asked = {"session": session, "query": "piers"}
    trace = (await stack.post("/v1/preflow", asked))["trace_id"]
    tool = {"name": "remember", "arguments": {"content": "Gulls nest on the roof"}}
    called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    return {
        "POST /mcp": ("/mcp", _json(called)),
        "POST /v1/admin/dead-letters/{seq}/replay": (
            f"/v1/admin/dead-letters/{await bury(stack)}/replay", {}),
        DELIVERED: await _push_by_github(stack),
        "POST /v1/git/gitlab/{tenant}/{project}": await _push_by_gitlab(stack),
        "POST /v1/preflow": ("/v1/preflow", _json(asked)),
        "POST /v1/predict": ("/v1/predict", _json({"session": session})),
        "POST /v1/recall/projects": ("/v1/recall/projects", question),
        "POST /v1/recall": ("/v1/recall", question),
        "POST /v1/traces/{id}/delivery": (f"/v1/traces/{trace}/delivery", {}),
    }  # fmt: skip


def _json(body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return {"data": json.dumps(body), "headers": headers}


async def _push_by_github(stack: Stack) -> Call:
    made = await stack.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    data = json.dumps(pushed()).encode()
    signature = hmac.new(SECRET.encode(), data, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature}"}
    return made.body["path"], {"data": data, "headers": {**headers, "X-GitHub-Delivery": "guid-1"}}


async def _push_by_gitlab(stack: Stack) -> Call:
    made = await stack.call("PUT", "/v1/git/webhooks/gitlab/shop", {"secret": SECRET})
    pushes = pushed(ref="refs/heads/dev", checkout_sha="e" * 40, project={"default_branch": "main"})
    headers = {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET}
    return made.body["path"], {"data": json.dumps(pushes), "headers": headers}


async def _send(stack: Stack, call: Call, key: str) -> Reply:
    path, sent = call
    headers = {**sent.get("headers", {})}
    if "X-GitHub-Delivery" not in headers:
        headers["Idempotency-Key"] = key
    return await stack.call("POST", path, **{**sent, "headers": headers})


async def test_every_post_takes_effect_once_under_one_key(stack: Stack) -> None:
    """Those of `RECIPES` are sent again after a lost answer, by `test_lost_answers`."""
    calls = await _make_calls(stack)
    names = {one.name for table in stack.routes.values() for one in table if one.method == "POST"}
    repeated = {f"POST {BY_NAME[name].path}" for name in RECIPES if BY_NAME[name].method == "POST"}
    assert names == repeated | set(calls)
    for name, call in calls.items():
        first, second = [await _send(stack, call, f"key of {name}") for _ in "ab"]
        assert first.status < 300, (name, first)
        bodies = [{**(reply.body or {}), "trace_id": None} for reply in (first, second)]
        assert (second.status, bodies[1]) == (first.status, bodies[0]), name
        if name != "POST /mcp":
            assert second.headers.get("Idempotent-Replayed") == "true", name
        if name in {"POST /mcp", DELIVERED}:
            continue
        path, sent = call
        longer = {**sent, "data": f"{sent.get('data', '')} "}
        refused = await _send(stack, (path, longer), f"key of {name}")
        assert refused.body["code"] == "idempotency_mismatch", (name, refused)
    gulls = "select count(*) from memory where tenant = %s and content like 'Gulls nest%%'"
    assert value(stack.admin_url, gulls, stack.number()) == 1


async def test_a_repeated_import_is_compared_with_the_first_upload(stack: Stack) -> None:
    line = memory_line("Boats leave at noon")
    headers = {"Idempotency-Key": "file-1"}

    async def send(*lines: dict[str, Any], path: str = "/v1/import") -> Reply:
        return await stack.call("POST", path, data=export_file(*lines), headers=headers)

    refused = await stack.call(
        "POST", "/v1/import", data=b"\xff", headers={**headers, "Content-Type": "text/markdown"}
    )
    assert refused.status == 400
    assert (await send(line)).body["created"] == 1
    again = await send(line)
    assert (again.body["created"], again.headers["Idempotent-Replayed"]) == (1, "true")
    for other in (await send(line, line), await send(line, path="/v1/import?dry_run=true")):
        assert (other.status, other.body["code"]) == (422, "idempotency_mismatch")

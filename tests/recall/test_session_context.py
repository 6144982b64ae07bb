"""The session-start context through the gateway: content, order and budgets."""

from __future__ import annotations

import json
from asyncio import to_thread
from typing import Any

from tests.support.stack import Stack, eventually
from tests.support.tables import run

SHOP = "project/shop"


async def _tell(stack: Stack, content: str, kind: str, **fields: Any) -> str:
    body = {"content": content, "kind": kind, "scope": SHOP, **fields}
    return str((await stack.post("/v1/remember", body))["id"])


def _section(answer: dict[str, Any], name: str) -> list[str]:
    return [one["id"] for s in answer["sections"] if s["name"] == name for one in s["entries"]]


async def test_a_pinned_memory_is_in_a_full_block_and_dropped_ones_are_named(
    stack: Stack,
) -> None:
    pinned = await _tell(stack, "Deploys need two reviewers", "reference", pinned=True)
    for n in range(20):
        await _tell(stack, f"We decided on option {n}. " + "Since " * n, "decision")
    await _tell(stack, "Build: `make build`", "convention")
    whole = await stack.get("/v1/context?project=shop")
    assert _section(whole, "Pinned") == [pinned]
    assert "`make build`" in whole["markdown"].split("### Commands")[1].split("###")[0]
    first, *_ = whole["markdown"].split("### Recent decisions\n")[1].splitlines()
    assert "option 19" in first
    assert whole["tokens"] <= whole["budgets"]["total"] == 2000
    small = await stack.get("/v1/context?project=shop&budget_tokens=200")
    assert small["tokens"] <= 200
    assert pinned in small["memories"]
    ids = set(small["memories"]) | {one["id"] for one in small["omitted"]}
    assert ids == set(whole["memories"])
    fell = small["omitted"][0]
    assert (fell["kind"], fell["reason"]) == ("decision", "budget")
    assert fell["section"] == "Recent decisions"
    assert fell["title"].startswith("We decided on option")
    assert {one["part"] for one in small["warnings"]} >= {"warm", "total"}
    plain = await stack.http.get(
        f"{stack.url}/v1/context?project=shop&format=markdown",
        headers={"Authorization": f"Bearer {stack.key}"},
    )
    assert plain.content_type == "text/markdown"
    assert await plain.text() == whole["markdown"]


async def test_a_project_sets_its_budgets_and_they_are_deleted_with_it(stack: Stack) -> None:
    path = "/v1/projects/shop/settings"
    before = await stack.get(path)
    parts = [before["context"][part] for part in ("hot", "warm", "stale", "session", "entries")]
    assert parts == [800, 800, 200, 200, 50]
    for n in range(6):
        await _tell(stack, f"Choice {n}: " + "drain the queue " * 5, "decision")
    made = await stack.call("PATCH", path, {"context": {"warm": 120, "entries": 5}})
    assert (made.status, made.body["context"]["warm"]) == (200, 120)
    answer = await stack.get("/v1/context?project=shop")
    spent = sum(s["tokens"] for s in answer["sections"] if s["part"] == "warm")
    assert 0 < spent <= 120
    assert {one["reason"] for one in answer["omitted"]} == {"budget"}
    begun = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "shop"})
    assert begun["context"].count("] Choice ") == len(answer["memories"])
    assert "Left out for room: 3 decisions." in begun["context"]
    other = await stack.get("/v1/context?project=other")
    assert other["budgets"]["warm"] == 800
    await stack.call("PATCH", path, {"context": {"warm": 2000}})
    full = await stack.get("/v1/context?project=shop")
    assert [one["reason"] for one in full["omitted"]] == ["entries"]
    [warned] = [one for one in full["warnings"] if one["part"] == "entries"]
    assert (warned["used"], warned["limit"], warned["omitted"]) == (5, 5, 1)
    wrong = await stack.call("PATCH", path, {"context": {"hot": 99_999, "warm": 99_999}})
    assert (wrong.status, wrong.body["field"]) == (422, "context.total")
    reader = stack.key_of(writes=["project/else"])
    assert (await stack.call("PATCH", path, {"context": None}, key=reader)).status == 403
    assert (await stack.call("DELETE", "/v1/admin/projects/shop")).status == 200
    assert (await stack.get(path))["context"] == before["context"]


async def test_open_files_add_relevant_memories_fenced_and_with_the_reason(stack: Stack) -> None:
    bug = await _tell(stack, "Refresh tokens expire twice in src/middleware/auth.ts", "bug")
    near = await _tell(stack, "src/middleware/cors.ts must come before the others", "spec")
    await _tell(stack, "src/billing/invoice.ts rounds half up", "spec")
    rule = await _tell(stack, "In TypeScript, no default exports", "convention")
    other = await _tell(stack, "In Python, no star imports", "convention")
    project = "/v1/context?project=shop"

    async def touched() -> Any:
        answer = await stack.get(f"{project}&files=/home/ann/shop/src/middleware/auth.ts")
        return answer if bug in answer["memories"] and near in answer["memories"] else None

    answer = await eventually(touched)
    assert _section(answer, "For the open files") == [bug, near, rule]
    assert _section(answer, "Conventions (always follow)") == [other]
    why = {one["id"]: one.get("reason") for s in answer["sections"] for one in s["entries"]}
    assert why[bug] == "touches src/middleware/auth.ts"
    assert why[near] == "touches src/middleware/cors.ts, beside auth.ts"
    assert why[rule] == "for .ts files"
    assert "invoice.ts" not in answer["markdown"]
    assert answer["budgets"]["total"] == 2400
    commit = {"sha": "c" * 40, "subject": "s", "committed_at": "2099-01-01T00:00:00Z"}
    files = [{"path": "src/middleware/auth.ts", "status": "deleted"}]
    change = {"project": "shop", "branch": "main", "after": "c" * 40, "commits": [commit]}
    await stack.post("/v1/git/changes", {**change, "files": files})

    async def doubtful() -> bool:
        found = await touched()
        return "⚠ gone" in found["markdown"].split("### For the open files")[1]

    await eventually(doubtful)
    assert _section(await stack.get(project), "⚠ May be stale") == [bug]


async def test_what_a_session_writes_without_a_scope_belongs_to_the_scope_of_the_session(
    stack: Stack,
) -> None:
    start = {"agent": "ann", "project": "a"}
    session = await stack.post("/v1/sessions/start", start)
    assert session["scope"] == "project/a"
    named = {"session": session["session"]}
    one = await stack.post("/v1/remember", {"content": "the quay floods in spring", **named})
    batch = {"items": [{"content": "the quay is dry in autumn", **named}]}
    [two] = (await stack.post("/v1/remember/batch", batch))["items"]
    fact = {"topic": "quay", "statement": "It floods.", "confidence": "low",
            "verified": "2026-01-01", **named}  # fmt: skip
    three = await stack.post("/v1/facts", fact)
    git = {"branch": "feat/dam", "files": []}
    four = await stack.post("/v1/remember", {"content": "a dam is built", "git": git, **named})
    scopes = [
        (await stack.get(f"/v1/memories/{made['id']}"))["scope"] for made in (one, two, three, four)
    ]
    assert scopes[:3] == ["project/a"] * 3
    assert scopes[3].startswith("project/a/feature/feat-dam")
    away = stack.key_of(reads=("project/a", "global"), writes=("global",))
    refused = await stack.call("POST", "/v1/remember", {"content": "x", **named}, away)
    assert refused.status == 403


async def test_the_json_of_a_context_does_not_repeat_its_markdown(stack: Stack) -> None:
    decisions = [
        "The heron oils the sluice gate every Tuesday before the tide, because rust stuck it once",
        "Invoices leave on the last working day, because two customers close their books then",
        "Passwords are hashed with argon2 rather than bcrypt, because long ones were cut off",
        "The map is drawn on the server, because phones of the crew lack the memory for it",
        "Retries wait at most a minute, because the harbour office bans a caller after two",
        "Photographs are kept as WebP, because the disk of the lighthouse is small and old",
    ]
    for decision in decisions:
        await _tell(stack, decision, "decision")
    answer = await stack.call("GET", "/v1/context?project=shop")
    markdown = answer.body["markdown"]
    assert all(decision in markdown for decision in decisions)
    entries = [one for section in answer.body["sections"] for one in section["entries"]]
    assert all(one["id"][-8:] in markdown for one in entries)
    assert not any(decision in str(entries) for decision in decisions)
    assert all(value not in (None, False) for one in entries for value in one.values())
    assert len(json.dumps(answer.body)) < 2.5 * len(markdown)


async def test_a_session_starts_with_what_was_done_since_the_last_one_and_the_age_of_decisions(
    stack: Stack,
) -> None:
    start = {"agent": "coder", "project": "shop", "include_context": False}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    await stack.post(f"/v1/sessions/{session}/end", {})
    tasks = [await _tell(stack, f"Task {n} of the checkout", "task") for n in range(3)]
    for task in tasks[:2]:
        assert (await stack.call("PATCH", f"/v1/tasks/{task}", {"state": "done"})).status == 200
    long_done = "update task set updated = now() - interval '9 days' where memory = %s"
    await to_thread(run, stack.admin_url, long_done, tasks[1])
    chosen = await _tell(stack, "Carts expire at midnight", "decision", key="cart-expiry")
    old = "update memory set created = now() - interval '3 days', valid_from = null where id = %s"
    await to_thread(run, stack.admin_url, old, chosen)

    again = await stack.post("/v1/sessions/start", start | {"include_context": True})
    markdown = again["context"]
    done = markdown.split("### Done since the last session\n")[1].split("\n\n")[0]
    assert "✓ Task 0" in done
    assert "Task 1" not in markdown
    assert "○ Task 2" in markdown.split("### Active tasks")[1].split("###")[0]
    assert "key=cart-expiry] Carts expire at midnight (3 days ago)" in markdown

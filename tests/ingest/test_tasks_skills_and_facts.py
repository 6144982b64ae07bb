"""Claiming tasks, task dependencies, replayed skills and learned facts."""

from __future__ import annotations

import asyncio
from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.stack import Stack
from tests.support.tables import run


async def _task(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "kind": "task", "scope": "project/shop", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _claim(stack: Stack, task: str, agent: str, seconds: int = 900) -> Any:
    return await stack.call("POST", f"/v1/tasks/{task}/claim", {"agent": agent, "seconds": seconds})


async def test_of_two_agents_claiming_a_task_one_holds_it_until_its_lease_ends(
    stack: Stack,
) -> None:
    task = await _task(stack, "Write the changelog of the next release")
    names = [f"agent-{n}" for n in range(8)]
    answers = await asyncio.gather(*(_claim(stack, task, name) for name in names))
    won = [name for name, answer in zip(names, answers, strict=True) if answer.status == 200]
    assert len(won) == 1
    lost = [answer for answer in answers if answer.status != 200]
    assert {answer.status for answer in lost} == {409}
    assert all(won[0] in answer.body["detail"] for answer in lost)
    assert {answer.body["current"]["claimed_by"] for answer in lost} == {won[0]}
    first = (await _claim(stack, task, won[0], 10)).body
    longer = (await _claim(stack, task, won[0], 5000)).body
    assert longer["task"]["claimed_until"] > first["task"]["claimed_until"]
    assert longer["version"] == first["version"] == 2
    other = next(name for name in names if name != won[0])
    move = {"agent": other, "state": "done"}
    assert (await stack.call("PATCH", f"/v1/tasks/{task}", move)).status == 409
    expired = "update task set claimed_until = now() - interval '1 second' where memory = %s"
    run(stack.admin_url, expired, task)
    listed = await stack.get("/v1/tasks?claimable=true")
    assert [one["id"] for one in listed["items"]] == [task]
    assert (await _claim(stack, task, other)).body["task"]["claimed_by"] == other


async def test_a_task_waits_for_its_dependencies_and_finished_ones_are_told_once_as_done(
    stack: Stack,
) -> None:
    first = await _task(stack, "Design the table of invoices")
    then = await _task(
        stack, "Build the page of invoices", edges=[{"to": first, "type": "depends_on"}]
    )
    detail = await stack.get(f"/v1/memories/{then}")
    assert detail["task"]["state"] == "blocked"
    assert detail["task"]["depends_on"] == [first]
    refused = await _claim(stack, then, "ann")
    assert refused.status == 409
    assert first in refused.body["detail"]
    done = {"state": "done"}
    assert (await stack.call("PATCH", f"/v1/tasks/{then}", done)).status == 409
    block = (await stack.get("/v1/context?project=shop"))["markdown"]
    assert "○ Design the table" in block
    assert "⊘ Build the page" in block
    assert (await stack.call("PATCH", f"/v1/tasks/{first}", done)).body["task"]["state"] == "done"
    assert (await _claim(stack, then, "ann")).status == 200
    block = (await stack.get("/v1/context?project=shop"))["markdown"]
    open_tasks, done_tasks = block.split("### Done since the last session")
    assert "Design the table" not in open_tasks
    assert "✓ Design the table" in done_tasks
    assert "→ Build the page" in block
    history = (await stack.get(f"/v1/memories/{then}/history"))["items"]
    assert history[0]["reason"] == "task: todo to doing, claimed by ann"
    body = {"agent": "ann"}
    released = await stack.post(f"/v1/tasks/{then}/release", body)
    free = {"claimed_by": None, "claimed_until": None, "claimable": True}
    assert released["task"] == {"state": "todo", "depends_on": [], **free}
    again = await stack.post(f"/v1/tasks/{then}/release", body)
    assert again["version"] == released["version"]
    listed = await stack.walked("/v1/tasks?scope=project/shop")
    assert [one["id"] for one in listed] == [then, first]
    assert [one["id"] for one in (await stack.get("/v1/tasks?state=done"))["items"]] == [first]


async def _depends(stack: Stack, task: str, on: str) -> Any:
    return await stack.call("POST", "/v1/links", {"from": task, "type": "depends_on", "to": on})


async def test_tasks_cannot_depend_on_each_other_in_a_circle(stack: Stack) -> None:
    a, b, c = [await _task(stack, f"Do the {n} step", key=n) for n in ("first", "second", "third")]
    assert [(await _depends(stack, *ends)).status for ends in ((b, a), (c, b))] == [201, 201]
    back = await _depends(stack, a, c)
    assert (back.status, [one["id"] for one in back.body["current"]["path"]]) == (409, [c, b, a, c])
    assert "ring of tasks" in back.body["detail"]
    edges = [{"to": c, "type": "depends_on"}]
    fresh = {"content": "Do the first step again", "kind": "task", "scope": "project/shop"}
    new = {**fresh, "key": "first", "supersede_reason": "more to do", "edges": edges}
    refused = await stack.call("POST", "/v1/remember", new)
    assert (refused.status, refused.body["field"]) == (422, "edges")
    assert (await stack.get(f"/v1/memories/{a}"))["status"] == "active"
    note = await _task(stack, "A note on the steps", kind="lesson")
    assert [(await _depends(stack, *e)).status for e in ((note, c), (a, note))] == [201, 201]
    edited = await stack.call("PATCH", f"/v1/memories/{note}", {"kind": "task"})
    assert (edited.status, "wait for itself" in edited.body["detail"]) == (409, True), edited
    assert (await stack.get(f"/v1/memories/{note}"))["kind"] == "lesson"
    assert (await _depends(stack, c, note)).status == 201
    pairs = [(await _task(stack, f"left {n}"), await _task(stack, f"right {n}")) for n in range(8)]
    ways = [ends for one, two in pairs for ends in ((one, two), (two, one))]
    raced = [one.status for one in await asyncio.gather(*(_depends(stack, *way) for way in ways))]
    assert {frozenset(both) for both in zip(raced[::2], raced[1::2], strict=True)} == {
        frozenset({201, 409})
    }


async def test_only_a_task_that_the_key_may_write_can_be_moved(stack: Stack) -> None:
    task = await _task(stack, "Rotate the keys of the payment service")
    for role in (KeyRole.READER, KeyRole.CI):
        key = stack.key_of(role=role, writes=["project/shop"])
        for method, path, body in (
            ("POST", "/claim", {"agent": "ann"}),
            ("POST", "/release", {}),
            ("PATCH", "", {"state": "done"}),
        ):
            reply = await stack.call(method, f"/v1/tasks/{task}{path}", body, key=key)
            assert (reply.status, reply.body["code"]) == (403, "forbidden"), (role, path)
    [left] = (await stack.get("/v1/tasks"))["items"]
    assert (left["version"], left["task"]["state"]) == (1, "todo")
    note = (await stack.post("/v1/remember", {"content": "The shop sells apples"}))["id"]
    assert (await _claim(stack, note, "ann")).status == 422
    stranger = stack.key_of(reads=("project/other",), writes=("project/other",))
    reader = stack.key_of(reads=("project/shop",), writes=("project/other",))
    alone = stack.key_of(agent="bob")
    path, claim = f"/v1/tasks/{task}/claim", {"seconds": 60}
    assert (await stack.call("POST", path, claim, key=stranger)).status == 404
    assert (await stack.call("POST", path, claim, key=reader)).status == 403
    as_ann = await stack.call("POST", path, {"agent": "ann"}, key=alone)
    assert (as_ann.status, as_ann.body["field"]) == (422, "agent")
    assert (await stack.call("POST", path, {"seconds": 86401}, key=alone)).status == 422
    assert (await stack.post(path, claim, key=alone))["task"]["claimed_by"] == "bob"
    assert (await stack.get("/v1/tasks", key=stranger))["items"] == []


async def test_a_skill_is_replayed_as_its_steps_with_parameters_filled(stack: Stack) -> None:
    steps = ["Check out {branch}", "Run `make release TAG={tag}`", "Announce it, ${USER}"]
    body = {"content": "Release the shop", "steps": [*steps, "sk-ant-api03-" + "a1B2" * 24]}
    made = await stack.post("/v1/remember", body)
    assert made["redactions"] == 1
    replayed = await stack.get(f"/v1/skills/{made['id']}/replay?branch=main")
    other = {"content": "Say hello", "kind": "skill", "scope": "project/shop", "steps": ["Wave"]}
    newest = await stack.post("/v1/remember", other)
    first, second = await stack.walked("/v1/skills")
    assert (first["id"], second["id"]) == (newest["id"], made["id"])
    assert (second["steps"], second["placeholders"]) == (4, ["branch", "tag"])
    narrow = await stack.get("/v1/skills?scope=project/shop")
    assert [one["title"] for one in narrow["items"]] == ["Say hello"]
    assert replayed["title"] == "Release the shop"
    assert replayed["steps"][:3] == ["Check out main", steps[1], steps[2]]
    assert "REDACTED" in replayed["steps"][3]
    assert replayed["missing"] == ["tag"]
    assert "\n1. Check out main\n2. Run" in replayed["text"]
    unknown = await stack.call("GET", f"/v1/memories/{made['id']}/replay?colour=red")
    assert (unknown.status, unknown.body["field"]) == (422, "colour")
    found = await stack.post("/v1/recall", {"query": "make release TAG"})
    assert found["memories"][0]["id"] == made["id"]
    wrong = await stack.call("POST", "/v1/remember", {**body, "kind": "bug"})
    assert (wrong.status, wrong.body["field"]) == (422, "steps")


async def test_a_claim_verified_again_supersedes_the_earlier_one(stack: Stack) -> None:
    claim: dict[str, Any] = {
        "topic": "nats",
        "statement": "A work queue stream deletes a message once it is acknowledged",
        "confidence": "medium",
        "domains": ["docs.nats.io", "https://nats.io/blog/a", "example.co.uk"],
        "verified": "2026-01-10",
    }
    made = await stack.post("/v1/facts", claim)
    assert made["status"] == "created"
    assert made["key"].startswith("learn:nats:")
    assert made["fact"]["corroborations"] == 2
    assert made["fact"]["domains"] == ["example.co.uk", "nats.io"]
    same = await stack.post("/v1/facts", {**claim, "statement": claim["statement"] + "."})
    again = await stack.post("/v1/facts", claim)
    assert [one["status"] for one in (same, again)] == ["duplicate"] * 2
    assert {one["id"] for one in (same, again)} == {made["id"]}
    surer = {**claim, "confidence": "high", "verified": "2026-02-01"}
    newer = await stack.post("/v1/facts", surer)
    assert newer["status"] == "superseded"
    shown = await stack.get(f"/v1/memories/{newer['id']}")
    assert (shown["kind"], shown["confidence"]) == ("lesson", 0.9)
    assert [one["type"] for one in shown["neighbours"]] == ["supersedes"]
    late = await stack.call("POST", "/v1/facts", claim)
    assert (late.status, late.body["current"]["id"]) == (409, newer["id"])
    other = {**claim, "topic": "postgres", "statement": "Vacuum never shrinks a table"}
    await stack.post("/v1/facts", other)
    page = await stack.get("/v1/facts?topic=nats")
    assert [one["id"] for one in page["items"]] == [newer["id"]]
    assert page["items"][0]["fact"]["verified"] == "2026-02-01"
    assert len((await stack.get("/v1/facts"))["items"]) == 2
    wrong = await stack.call("POST", "/v1/facts", {**claim, "domains": ["nats.io", "not one"]})
    assert (wrong.status, wrong.body["field"]) == (422, "domains.1")


async def test_a_kind_never_changes_by_itself_but_a_hint_suggests_one(stack: Stack) -> None:
    body = {"content": "We decided to use Postgres because joins matter", "kind": "context"}
    made = await stack.post("/v1/remember", body)
    assert "this reads like a decision; kind stays context" in made["hints"]
    await stack.settled()
    assert (await stack.get(f"/v1/memories/{made['id']}"))["kind"] == "context"

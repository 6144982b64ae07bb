"""Dream routes and command: limits, queue, results and explanations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.commands import command
from tests.support.stack import Stack, eventually, running_stack

SCOPE = "project/shop"
TALK = (
    ("user", "We decided to keep all prices in cents in src/money.py, for floats lose pennies."),
    ("assistant", "Noted: prices are integers of cents in src/money.py from now on."),
)


@pytest.fixture
async def dreams(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    async with running_stack(database, nats_url, model_home(), scheduler_interval=0.2) as made:
        yield made


async def _say(stack: Stack, session: str, *said: tuple[str, str]) -> None:
    turns = [{"role": role, "content": content} for role, content in said]
    await stack.post("/v1/turns", {"session": session, "turns": turns})


async def _begin(stack: Stack) -> str:
    start = {"agent": "ann", "project": "shop"}
    return str((await stack.post("/v1/sessions/start", start))["session"])


async def _runs(stack: Stack, status: str = "done") -> list[dict[str, Any]]:
    found = (await stack.get(f"/v1/dreams?scope={SCOPE}"))["items"]
    return [run for run in found if run["status"] == status]


async def _heard(stack: Stack, events: list[dict[str, Any]]) -> None:
    headers = {"Authorization": f"Bearer {stack.key}"}
    url = f"{stack.url}/v1/events?event=digested&event=digesting"
    async with stack.http.get(url, headers=headers) as answer:
        async for line in answer.content:
            events.extend(json.loads(line[6:]) for _ in [0] if line.startswith(b"data: "))


async def _command(stack: Stack, home: Path, *words: str, group: Sequence[str] = ("dream",)) -> Any:
    env = {
        "REVERIE_API_KEY": stack.key,
        "REVERIE_RECALL_PORT": stack.url.rsplit(":", 1)[1],
        "REVERIE_HOME": str(home),
        "COLUMNS": "200",
    }
    return await command(env, *group, *words)


async def test_a_scope_dreams_at_its_limits_and_reports_what_it_did_and_why(
    dreams: Stack, tmp_path: Path
) -> None:
    stack = dreams
    events: list[dict[str, Any]] = []
    hearing = asyncio.create_task(_heard(stack, events))
    session = await _begin(stack)
    await _say(stack, session, *TALK)
    [waits] = (await stack.get("/v1/dream"))["items"]
    assert (waits["scope"], waits["state"], waits["turns"], waits["segments"]) == (
        SCOPE, "waiting", 2, 1,
    )  # fmt: skip
    assert waits["new_turns"] == 2

    told = await _limits(stack)
    await _say(stack, session, ("user", "Never log card numbers; mask them in src/log.py."))
    run = (await eventually(lambda: _runs(stack)))[0]
    assert run["reason"] == "segments"
    assert told["overrides"] == ["segments"]

    await stack.post(f"/v1/sessions/{session}/end", {})
    runs = await eventually(lambda: _digested(stack, 3))
    await _explained(stack, runs)
    await eventually(lambda: _told_of(events, runs))
    hearing.cancel()
    await asyncio.gather(hearing, return_exceptions=True)
    await _by_command(stack, tmp_path)
    await _counted(stack)


async def _limits(stack: Stack) -> Any:
    """Tenant and project set their own; the project's go over the tenant's."""
    reader = stack.key_of(role=KeyRole.READER, reads=["project/shop"], writes=[])
    refused = await stack.call("PATCH", "/v1/admin/settings", {"dream": {"turns": 1}}, reader)
    assert refused.status == 403
    wrong = await stack.call("PATCH", "/v1/admin/settings", {"dream": {"turns": 0}})
    assert wrong.status == 422
    tenant = {"dream": {"segments": 2, "turns": 1000, "chars": 1_000_000}}
    assert (await stack.call("PATCH", "/v1/admin/settings", tenant)).body["dream"]["segments"] == 2
    path = "/v1/projects/shop/settings"
    over = await stack.call("PATCH", path, {"dream": {"segments": 5}})
    assert (over.body["dream"]["segments"], over.body["dream"]["turns"]) == (5, 1000)
    back = (await stack.call("PATCH", path, {"dream": None})).body["dream"]
    assert (back["segments"], back["overrides"]) == (2, [])
    return (await stack.get("/v1/admin/settings"))["dream"] | {"overrides": ["segments"]}


async def _digested(stack: Stack, turns: int) -> list[dict[str, Any]]:
    runs = await _runs(stack)
    return runs if sum(one["turns"] for one in runs) == turns else []


async def _explained(stack: Stack, runs: list[dict[str, Any]]) -> None:
    made = [run for run in runs if run["created"]]
    assert made
    full = await stack.get(f"/v1/dreams/{made[0]['id']}")
    assert sum(part["turns"] for part in full["input"]) == full["turns"]
    assert full["outcomes"]["created"] == full["created"] == sum(full["kinds"].values())
    assert {"distil", "slice", "write"} <= set(full["seconds"])
    assert (full["llm_calls"], full["llm_tokens"], full["degraded"]) == (0, 0, [])
    one = next(one for one in full["decisions"] if one["outcome"] == "created")
    assert one["reason"]
    assert one["turns"]
    assert one["content"]
    path = f"/v1/dreams/{made[0]['id']}?limit=1"
    page = await stack.get(path)
    pages = page["decisions"]
    while page["next"]:
        page = await stack.get(f"{path}&cursor={page['next']}")
        pages += page["decisions"]
    assert [one["number"] for one in pages] == [one["number"] for one in full["decisions"]]
    stranger = stack.key_of(role=KeyRole.READER, reads=["project/other"], writes=[])
    hidden = await stack.call("GET", f"/v1/dreams/{made[0]['id']}", key=stranger)
    assert hidden.status == 404
    assert (await stack.get("/v1/dream", key=stranger))["items"] == []


async def _told_of(events: list[dict[str, Any]], runs: list[dict[str, Any]]) -> bool:
    ended = {one["run"]: one for one in events if one["event"] == "digested"}
    return all(
        run["id"] in ended
        and (ended[run["id"]]["scope"], ended[run["id"]]["turns"]) == (SCOPE, run["turns"])
        for run in runs
    )


async def _by_command(stack: Stack, home: Path) -> None:
    session = await _begin(stack)
    await _say(stack, session, ("user", "Remember: the invoice job runs at night, see jobs.py."))
    code, said, _ = await _command(stack, home, "status")
    assert (code, SCOPE in said) == (0, True)
    code, said, errors = await _command(stack, home, "run", "--scope", SCOPE, "--json")
    assert code == 0, (said, errors)
    done = json.loads(said)
    assert (done["scope"], done["status"], done["runs"][0]["turns"]) == (SCOPE, "done", 1)
    assert "turns" in errors or "queued" in errors or "running" in errors or not errors
    _, said, _ = await _command(stack, home, "history", "--scope", SCOPE)
    short = done["runs"][0]["id"][-8:]
    assert short in said
    _, said, _ = await _command(stack, home, "history", short)
    assert "created" in said
    assert "invoice job" in said
    assert "written by rules" in said
    memories = (await stack.get(f"/v1/memories?scope={SCOPE}"))["items"]
    invoice = next(item["id"] for item in memories if "invoice job" in item["content"])
    _, said, _ = await _command(stack, home, invoice, group=("show",))
    assert "from dream, written by rules" in said
    code, said, _ = await _command(stack, home, "status")
    assert said == "All turns are digested.\n"
    code, said, _ = await _command(stack, home, "run", "--session", session)
    nothing, earlier = said.splitlines()
    assert (code, "0 turns: nothing new" in nothing) == (0, True)
    assert "took the turns: done, 1 turn: " in earlier
    assert short in earlier


async def _counted(stack: Stack) -> None:
    async with stack.http.get(f"{stack.urls['dream']}/metrics") as answer:
        page = await answer.text()
    for name in (
        "reverie_dreams_queued 0.0",
        "reverie_dreams_oldest_seconds",
        'reverie_dream_seconds_count{outcome="done"}',
        "reverie_dream_segments_total{kind=",
    ):
        assert name in page
    assert "reverie_dream_turns_total 4.0" in page

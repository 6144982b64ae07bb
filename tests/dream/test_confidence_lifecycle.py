"""Confidence fades, rises with use, and memories are archived or promoted by it."""

from __future__ import annotations

from asyncio import gather, to_thread
from collections.abc import AsyncIterator
from typing import Any, LiteralString

import pytest

from reverie.domain.access.principals import KeyRole
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import run, value


@pytest.fixture
async def tended(
    database: DatabaseUrls, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stack]:
    """The system with a worker that never stops tending, two memories at a time."""
    monkeypatch.setattr("reverie_services.dream.maintenance.steps.PAGE_SIZE", 2)
    more = {"confidence_half_life_days": {"default": 7.0}, "maintenance_interval": 0.001}
    async with running_stack(database, nats_url, model_home(), **more) as made:
        yield made


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": "project/shop", "kind": "decision", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _age(stack: Stack, memory: str, days: int) -> None:
    """Makes a memory as old as if it had been written then, with all that happened to it."""
    await to_thread(
        run,
        stack.admin_url,
        "update memory set created = now() - make_interval(days => %s), updated = now()"
        " - make_interval(days => %s), confirmed = null where id = %s",
        days,
        days,
        memory,
    )


async def _status(stack: Stack, memory: str) -> str:
    return str((await stack.get(f"/v1/memories/{memory}"))["status"])


async def test_after_two_half_lives_a_memory_has_a_quarter_of_its_confidence_and_a_lesson_all(
    stack: Stack,
) -> None:
    lesson = await _remember(stack, "Never trust the clock", kind="lesson", confidence=1.0)
    # What nothing is linked to fades faster after a half-life.
    edges = [{"to": lesson, "type": "relates_to"}]
    decision = await _remember(stack, "We use jose for tokens", confidence=1.0, edges=edges)
    for memory in (decision, lesson):
        await _age(stack, memory, 60)
    shown = await stack.get(f"/v1/memories/{decision}")
    assert shown["confidence"] == pytest.approx(0.25, abs=0.01)
    assert shown["base_confidence"] == 1.0
    assert (await stack.get(f"/v1/memories/{lesson}"))["confidence"] == 1.0
    listed = {m["id"]: m["confidence"] for m in (await stack.get("/v1/memories"))["items"]}
    assert listed[decision] == shown["confidence"]


async def test_repeating_a_memory_restores_its_confidence(stack: Stack) -> None:
    memory = await _remember(stack, "Deploys happen on Tuesdays", confidence=1.0)
    await _age(stack, memory, 60)
    assert await _remember(stack, "Deploys happen on Tuesdays", confidence=1.0) == memory
    assert (await stack.get(f"/v1/memories/{memory}"))["confidence"] == 1.0


async def test_fresh_and_pinned_memories_survive_and_archived_ones_are_returned_on_request(
    stack: Stack,
) -> None:
    faded = await _remember(stack, "The staging server is called ostrich")
    pinned = await _remember(stack, "The main server is called ostrich too", pinned=True)
    lesson = await _remember(stack, "An ostrich needs two restarts", kind="lesson")
    fresh = [await _remember(stack, f"Fresh ostrich {n}", confidence=0.05) for n in range(5)]
    near = await _remember(stack, "Beside", edges=[{"to": faded, "type": "relates_to"}])
    for memory in (faded, pinned, lesson):
        await _age(stack, memory, 300)
    before = await stack.get(f"/v1/memories/{faded}")

    done = await stack.post("/v1/maintenance/run", {})
    assert done["archived"] == 1
    assert {await _status(stack, one) for one in (pinned, lesson, near, *fresh)} == {"active"}
    after = await stack.get(f"/v1/memories/{faded}")
    assert (after["status"], after["version"]) == ("archived", before["version"] + 1)
    kept = value(stack.admin_url, "select reason from memory_version where memory = %s", faded)
    assert kept == "its confidence fell to 0.1"
    assert (await stack.post("/v1/maintenance/run", {}))["archived"] == 0

    query = {"query": "staging server ostrich", "limit": 50}
    found = await stack.post("/v1/recall", query)
    asked = await stack.post("/v1/recall", query | {"include": ["archived"]})
    assert faded not in {one["id"] for one in found["memories"]}
    assert faded in {one["id"] for one in asked["memories"]}
    listed = await stack.get("/v1/memories?status=archived")
    assert [one["id"] for one in listed["items"]] == [faded]
    plain = await stack.get("/v1/memories")
    assert faded not in {one["id"] for one in plain["items"]}
    neighbours = (await stack.get(f"/v1/memories/{near}"))["neighbours"]
    assert faded not in {one["id"] for one in neighbours}
    assert faded not in (await stack.get("/v1/context?project=shop"))["memories"]

    twin = await _remember(stack, "The staging server is called ostrich")
    assert twin != faded
    refused = await stack.call("POST", f"/v1/memories/{faded}/restore", {})
    assert (refused.status, refused.body["current"]["id"]) == (409, twin)
    forgotten: LiteralString = "update memory set status = 'deleted' where id = %s"
    await to_thread(run, stack.admin_url, forgotten, twin)

    reader = stack.key_of(role=KeyRole.READER)
    denied = await stack.call("POST", f"/v1/memories/{faded}/restore", {}, key=reader)
    assert denied.status in {403, 404}
    assert (await stack.call("POST", "/v1/maintenance/run", {}, key=reader)).status == 403

    restored = await stack.post(f"/v1/memories/{faded}/restore", {})
    assert restored["version"] == after["version"] + 1
    shown = await stack.get(f"/v1/memories/{faded}")
    assert shown["status"] == "active"
    assert shown["confidence"] >= 0.8
    assert (await stack.post("/v1/maintenance/run", {}))["archived"] == 0
    again = await stack.call("POST", f"/v1/memories/{faded}/restore", {})
    assert again.status == 409


async def test_a_recall_boosts_a_memory_once_a_session_and_its_neighbour_less(stack: Stack) -> None:
    used = await _remember(stack, "Pelicans carry the parcels", confidence=0.5)
    near = await _remember(stack, "Their beak holds three", confidence=0.5)
    far = await _remember(stack, "Unrelated and alone", confidence=0.5)
    edge = "insert into edge (tenant, id, src, kind, dst) select tenant, gen_random_uuid(), id,"
    await to_thread(
        run, stack.admin_url, edge + " 'depends_on', %s from memory where id = %s", near, used
    )
    started = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
    other = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
    query = {"query": "pelicans carry parcels", "limit": 1, "session": started["session"]}
    for _ in range(3):
        await stack.post("/v1/recall", query)

    async def uses(count: int) -> Any:
        shown = await stack.get(f"/v1/memories/{used}")
        return shown if shown["access_count"] == count else None

    shown = await eventually(lambda: uses(1))
    assert shown["confidence"] == pytest.approx(0.7, abs=0.001)
    assert shown["accessed_at"] is not None
    await stack.post("/v1/recall", query | {"session": other["session"]})
    shown = await eventually(lambda: uses(2))
    assert shown["confidence"] == pytest.approx(0.9, abs=0.001)
    beside = await stack.get(f"/v1/memories/{near}")
    assert beside["confidence"] == pytest.approx(0.6, abs=0.001)
    assert beside["access_count"] == 0
    assert (await stack.get(f"/v1/memories/{far}"))["confidence"] == pytest.approx(0.5, abs=0.001)


async def test_a_statement_from_three_sessions_becomes_a_convention_beside_the_original(
    stack: Stack,
) -> None:
    async def session() -> str:
        started = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
        return str(started["session"])

    text = "Handlers return or raise, one place acknowledges"
    sessions = [await session() for _ in range(3)]
    first = [await _remember(stack, text, session=one) for one in sessions[:2]]
    for _ in range(2):
        await _remember(stack, "Said often in one session", session=sessions[0])
        await _remember(stack, "My own habit", scope="agent/ann", session=sessions[0])
    assert (await stack.post("/v1/maintenance/run", {}))["promoted"] == 0
    await _remember(stack, text, session=sessions[2])
    committed = await _remember(
        stack, "Every file begins with a docstring",
        git={"commit": "abcdef1234", "files": ["docs/AGENTS.md"]},
    )  # fmt: skip
    for one in sessions:
        await _remember(stack, "A private habit", scope="agent/ann", session=one)
    assert (await stack.post("/v1/maintenance/run", {}))["promoted"] == 2
    assert (await stack.post("/v1/maintenance/run", {}))["promoted"] == 0

    listed = (await stack.get("/v1/memories?kind=convention"))["items"]
    made = {one["content"]: one for one in listed}
    assert set(made) == {text, "Every file begins with a docstring"}
    assert {one["scope"] for one in listed} == {"project/shop"}
    assert made[text]["metadata"]["promotion"] == "said 3 times in 3 sessions"
    assert made[text]["metadata"]["from"] == first[0]
    about = made["Every file begins with a docstring"]["metadata"]
    assert about["promotion"] == "committed to the agent file docs/AGENTS.md"
    original = await stack.get(f"/v1/memories/{first[0]}")
    assert (original["status"], original["kind"]) == ("active", "decision")
    [led] = [one for one in original["neighbours"] if one["type"] == "led_to"]
    assert (led["id"], led["direction"]) == (made[text]["id"], "out")
    assert await _status(stack, committed) == "active"


async def test_concurrent_maintenance_workers_archive_and_promote_each_memory_once(
    tended: Stack,
) -> None:
    faded = [await _remember(tended, f"The heron rests on pole {n}", key=f"p{n}") for n in range(5)]
    rules = [f"Rule of the house number {word}" for word in ("one", "two", "three", "four", "five")]
    ids = [await _remember(tended, rule) for rule in rules]
    for one in ids[:2]:
        taken = await _remember(tended, f"In the way of {one}", kind="convention")
        key = "update memory set key = 'convention:' || %s where id = %s"
        await to_thread(run, tended.admin_url, key, one, taken)
    for one in faded:
        await _age(tended, one, 300)
    git = {"commit": "abcdef1234", "files": ["CLAUDE.md"]}
    for rule in rules:
        await _remember(tended, rule, git=git)
    await gather(*(tended.post("/v1/maintenance/run", {}) for _ in range(4)))

    async def promoted() -> Any:
        listed = (await tended.get("/v1/memories?kind=convention"))["items"]
        made = [one["metadata"]["from"] for one in listed if "from" in one["metadata"]]
        return made if len(made) >= 3 else None

    async def archived() -> bool:
        return {await _status(tended, one) for one in faded} == {"archived"}

    assert sorted(await eventually(promoted)) == sorted(ids[2:])
    await eventually(archived)
    for one in faded:
        versions = (await tended.get(f"/v1/memories/{one}/history"))["items"]
        assert [version["status"] for version in versions].count("archived") == 1

    holder = await _remember(tended, "Pole zero fell down", key="p0")
    refused = await tended.call("POST", f"/v1/memories/{faded[0]}/restore", {})
    assert (refused.status, refused.body["current"]["id"]) == (409, holder)
    assert holder in refused.body["detail"]
    assert await _status(tended, faded[0]) == "archived"


@pytest.mark.parametrize("writes", [("project/shop/*",), ("project/shop/*", "project/b")])
async def test_a_run_of_a_scoped_key_is_shown_to_none_who_reads_less_than_it_names(
    stack: Stack, writes: tuple[str, ...]
) -> None:
    faded = await _remember(stack, "The ostrich", scope="project/shop/topic/birds", key="bird")
    await _age(stack, faded, 300)
    key = stack.key_of(role=KeyRole.WRITER, reads=writes, writes=writes)
    done = await stack.post("/v1/maintenance/run", {}, key=key)
    assert (done["archived"], done["ranked"]) == (1, 0)

    async def runs(*reads: str) -> list[str]:
        reader = stack.key_of(role=KeyRole.READER, reads=reads, writes=())
        return [run["id"] for run in (await stack.get("/v1/dreams", key=reader))["items"]]

    assert await runs("global", "project/shop", "project/b") == []
    assert await runs("project/shop/*") == (await runs("*") if len(writes) == 1 else [])
    assert len(await runs("*")) == 1

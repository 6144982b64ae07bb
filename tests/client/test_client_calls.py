"""Every call, session and stream of the Python client on a running system."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import date
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.client import ApiError, AsyncReverie, Reverie, StreamEvent
from reverie.client.transport import ApiResponse
from reverie.domain.text.memory_fence import CLOSE_TAG, OPEN_TAG
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.stack import Stack, eventually

ELSEWHERE = {
    "GET /docs",
    "GET /docs/redoc.js",
    "GET /openapi.json",
    "POST /mcp",
    "GET /v1/skills/{id}/replay",
    "POST /v1/git/github/{tenant}/{project}",
    "POST /v1/git/gitlab/{tenant}/{project}",
    "GET /v1/export",
    "GET /v1/events",
    "GET /v1/events/page",
    "POST /v1/import",
}
"""Another protocol, a second name, deliveries that a forge signs, and what streams."""
SHA = "1f" * 20


class Noting(AsyncReverie):
    """A client that notes what it calls."""

    noted: set[str]

    async def call(self, method: str, path: str, **more: Any) -> ApiResponse:
        self.noted.add(f"{method} {path}")
        return await super().call(method, path, **more)


async def test_every_route_has_a_typed_call(stack: Stack) -> None:
    async with Noting(stack.url, stack.key) as reverie:
        reverie.noted = set()
        await _memories(reverie)
        await _work(reverie)
        await _administration(reverie)
    routes = {route.name for table in stack.routes.values() for route in table}
    patterns = {name: re.sub(r"\{[a-z]+\}", "[^/]+", name) + "$" for name in routes - ELSEWHERE}
    missing = {
        name
        for name, pattern in patterns.items()
        if not any(re.match(pattern, call) for call in reverie.noted)
    }
    assert missing == set()


async def _memories(reverie: AsyncReverie) -> None:
    made = await reverie.remember(
        "Lamps are lit at dusk.", kind="lesson", key="lamps", git={"files": ["src/lamp.py"]}
    )
    batch = await reverie.remember_batch([{"content": "Oil is stored below."}, {"content": ""}])
    assert [type(one).__name__ for one in batch.items] == ["RememberResponse", "Problem"]
    other = batch.items[0].model_dump()["id"]
    assert (await reverie.recall("when are lamps lit?", limit=1)).memories[0].id == made.id
    block = await reverie.recall_as_text("when are lamps lit?")
    assert block.startswith(OPEN_TAG)
    assert block.endswith(CLOSE_TAG)
    assert "Lamps are lit at dusk." in block
    assert str(made.id)[-8:] in block
    assert {one.id async for one in reverie.list_memories()} >= {made.id, other}
    short = (await reverie.get_memory(made.id)).short_id
    assert (await reverie.get_memory(short)).content == "Lamps are lit at dusk."
    edited = await reverie.edit_memory(made.id, {"content": "Lamps are lit at six."}, version=1)
    assert edited.version == 2
    with pytest.raises(ApiError) as moved:
        await reverie.edit_memory(made.id, {"content": "Lamps are lit at five."}, version=1)
    assert moved.value.problem_code == "precondition_failed"
    assert (await reverie.rollback(made.id, 1)).version == 3
    assert [one.version async for one in reverie.list_versions(made.id)] == [3, 2, 1]
    assert (await reverie.get_provenance(made.id)).id == made.id
    assert (await reverie.feedback(made.id, "approve")).changed
    assert (await reverie.confirm(made.id)).cleared == 0
    assert (await reverie.pin(made.id)).changed
    assert (await reverie.unpin(made.id)).changed
    with pytest.raises(ApiError, match="archive"):
        await reverie.restore(made.id)
    skill = await reverie.remember("Light {place}", kind="skill", steps=["Go to {place}"])
    assert [one.placeholders async for one in reverie.list_skills()] == [["place"]]
    assert "the pier" in (await reverie.replay_skill(skill.id, {"place": "the pier"})).text
    edge = await reverie.link(made.id, other, "relates_to", weight=0.5)
    assert {one.id for one in (await reverie.get_subgraph(made.id)).nodes} >= {made.id, other}
    assert (await reverie.unlink(edge.id)).id == edge.id
    assert (await reverie.list_impact("src/lamp.py")).path == "src/lamp.py"
    assert (await reverie.get_graph_stats()).memories >= 3
    assert "Lamps" in (await reverie.get_context(scope=["global"])).markdown
    assert (await reverie.forget(other)).changed


async def _work(reverie: AsyncReverie) -> None:
    async with reverie.session("clerk", project="pier") as session:
        assert OPEN_TAG in session.context or session.context == ""
        said = await session.append_turn(
            "user", "We always moor at the north side.", external_id="1"
        )
        again = await session.append_turn(
            "user", "We always moor at the north side.", external_id="1"
        )
        assert (said.accepted, again.duplicates) == (1, 1)
        given = await session.preflow("where do we moor?")
        assert given.turn == 1
        assert (await reverie.confirm_delivery(str(given.trace_id))).delivered_at
        await reverie.correct_memories(session.id, diff="no, at the south side")
        session.summary = "Where to moor."
    assert session.end_result is not None
    with pytest.raises(LookupError):
        async with reverie.session("clerk", project="pier") as broken:
            raise LookupError
    assert broken.end_result is not None
    assert len([one async for one in reverie.list_sessions(agent="clerk")]) == 2
    assert [one.role async for one in reverie.list_turns(session.id)] == ["user"]
    task = await reverie.remember("Paint the pier.", kind="task", scope="project/pier")
    assert [one.id async for one in reverie.list_tasks(scope="project/pier")] == [task.id]
    assert (await reverie.claim_task(task.id, agent="clerk", seconds=60)).task.claimed_by == "clerk"
    assert (await reverie.release_task(task.id, agent="clerk")).task.claimed_by is None
    assert (await reverie.update_task(task.id, "done", agent="clerk")).task.state == "done"
    day = date(2026, 1, 2)
    learned = await reverie.add_fact("rope", "Hemp shrinks when wet.", "high", day)
    assert [one.id async for one in reverie.list_facts(topic="rope")] == [learned.id]
    assert (await reverie.start_dream(scope=session.scope)).scope == session.scope
    assert [one async for one in reverie.list_undigested(scope="project/none")] == []
    runs = reverie.list_dreams()
    first = await eventually(lambda: anext(runs, None))
    assert first is not None
    assert (await reverie.get_dream(first.id)).id == first.id
    assert [one async for one in reverie.list_summaries(scope="project/none")] == []
    assert [one async for one in reverie.list_summary_versions("project/none")] == []
    assert (await reverie.run_maintenance(steps=["archive"], dry_run=True)).archived == 0
    await reverie.run_maintenance()
    change = {
        "project": "pier",
        "branch": "main",
        "after": SHA,
        "commits": [{"sha": SHA, "committed_at": "2026-01-01T00:00:00Z"}],
    }
    assert not (await reverie.announce_git_change(change)).duplicate
    assert (await reverie.announce_git_change(change)).duplicate
    assert [one async for one in reverie.list_stale(project="pier")] == []
    assert [one async for one in reverie.list_unanchored("pier")] == []
    assert [one async for one in reverie.list_reviews()] == []
    for decided in (reverie.accept_review(task.id), reverie.reject_review(task.id)):
        with pytest.raises(ApiError, match="no "):
            await decided
    anchor = {"memory": str(task.id), "git": {"commit": SHA, "files": ["src/pier.py"]}}
    assert (await reverie.set_anchors("pier", [anchor])).anchored == 1
    trace = await eventually(lambda: anext(reverie.list_traces(), None))
    assert trace is not None
    assert (await reverie.get_trace(str(trace.id))).id == trace.id


async def _administration(reverie: AsyncReverie) -> None:
    assert (await reverie.get_readiness())["ready"]
    made = await reverie.create_key("guest", role="reader")
    assert made.id in {one.id async for one in reverie.list_keys()}
    assert (await reverie.get_key(made.id)).label == "guest"
    assert (await reverie.update_key(made.id, {"label": "friend"})).label == "friend"
    assert (await reverie.rotate_key(made.id, overlap_seconds=0)).key != made.key
    assert (await reverie.revoke_key(made.id)).id == made.id
    assert [one async for one in reverie.list_audit_entries(subject=made.id)] == []
    assert "pier" in {one.project async for one in reverie.list_projects()}
    assert "project/pier" in {one.scope async for one in reverie.list_scopes()}
    set_to = await reverie.update_project_settings("pier", {"context": {"hot": 77}})
    assert set_to.context.hot == (await reverie.get_project_settings("pier")).context.hot == 77
    assert (await reverie.update_project_settings("pier", {"context": None})).context.hot != 77
    assert (await reverie.update_tenant_settings({"dream": {"turns": 9}})).dream.turns == 9
    assert (await reverie.get_tenant_settings()).dream.turns == 9
    assert (await reverie.vault_put("berth", 7, version=0)).version == 1
    assert (await reverie.vault_get("berth")).value == 7
    assert [one.key async for one in reverie.list_vault()] == ["berth"]
    assert (await reverie.vault_delete("berth")).deleted
    assert [one async for one in reverie.list_vault_suggestions()] == []
    assert (await reverie.list_models()).models[0].state == "ready"
    assert (await reverie.get_redaction_status()).state == "none"
    for kind in ("github", "gitlab"):
        hook = await reverie.set_webhook(kind, "pier")
        assert (hook.kind, hook.project) == (kind, "pier")
        assert [one.path async for one in reverie.list_webhooks()] == [hook.path]
        assert (await reverie.delete_webhook(kind, "pier")).kind == kind
        with pytest.raises(ApiError, match="pier"):
            await reverie.delete_webhook(kind, "pier")
    assert [one async for one in reverie.list_webhooks()] == []
    assert (await reverie.delete_scope("topic/none", include_descendants=True)).done
    assert (await reverie.delete_project("pier")).done
    with pytest.raises(ApiError) as kept:
        await reverie.delete_tenant("another")
    assert kept.value.status == 422
    with pytest.raises(ApiError, match=r"has no GET /v1/tides: it may be older") as older:
        await reverie.call("GET", "/v1/tides")
    assert older.value.problem_code == "not_found"


async def test_the_synchronous_client_walks_lists_sessions_and_files(alone: Stack) -> None:
    await asyncio.to_thread(_walk, alone.url, alone.key)


def _walk(url: str, key: str) -> None:
    with Reverie(url, key) as reverie:
        reverie.remember_batch([{"content": f"Buoy {n} is red."} for n in range(120)])
        assert len(list(reverie.list_memories())) == 120
        assert "Buoy 7 is red." in reverie.recall_as_text("which colour has buoy 7?")
        with reverie.session("clerk") as session:
            assert session.append_turn("user", "Buoys are checked in May.").accepted == 1
            assert session.preflow("buoys").turn == 1
            session.summary = "About buoys."
        assert session.end_result is not None
        assert [one.summary for one in reverie.list_sessions()] == ["About buoys."]
        with pytest.raises(ApiError) as refused:
            reverie.recall("")
        assert (refused.value.problem_code, refused.value.problem.field) == ("invalid", "query")
        file = b"".join(reverie.export_memories())
        assert file.count(b'"type": "memory"') == 120 or file.count(b'"type":"memory"') == 120
        taken = reverie.import_memories(BytesIO(file), dry_run=True)
        assert (taken.created, taken.rejected) == (0, 0)
        with pytest.raises(ApiError, match="line 1"):
            reverie.import_memories(b"no export")
    with pytest.raises(RuntimeError, match="closed"):
        reverie.get_graph_stats()
    reverie.close()


async def test_watched_events_resume_after_a_broken_connection(stack: Stack) -> None:
    place = urlsplit(stack.url)
    async with (
        ChaosProxy(str(place.hostname), int(place.port or 0)) as proxy,
        AsyncReverie(f"http://127.0.0.1:{proxy.port}", stack.key, max_attempts=20) as watcher,
        AsyncReverie(stack.url, stack.key) as writer,
    ):
        heard = watcher.stream_events(event=["remembered"])
        first = asyncio.create_task(_next(heard))
        await eventually(lambda: _true(proxy.accepted > 0))
        made = [(await writer.remember(f"Bell {n} rings.")).id for n in range(2)]
        told = [await first, await _next(heard)]
        proxy.reset_connections()
        proxy.restore()
        made += [(await writer.remember(f"Bell {n} rings.")).id for n in range(2, 5)]
        told += [await _next(heard) for _ in range(3)]
        assert [one.data["id"] for one in told] == [str(one) for one in made]
        resumed = writer.stream_events(event=["remembered"], after=told[1].cursor)
        assert (await _next(resumed)).data["id"] == str(made[2])
        with pytest.raises(ApiError) as refused:
            await _next(writer.stream_events(after="nowhere"))
        assert refused.value.problem_code == "invalid"


async def _next(heard: AsyncIterator[StreamEvent]) -> StreamEvent:
    async with asyncio.timeout(30):
        return await anext(heard)


async def _true(held: bool) -> bool:
    return held

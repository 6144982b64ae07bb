"""Answers, refusals, sessions and streams of the Python client on a running system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from urllib.parse import urlsplit

import pytest

from reverie.client import ApiError, AsyncReverie, Reverie, StreamEvent
from reverie.domain.text.memory_fence import CLOSE_TAG, OPEN_TAG
from reverie.testing.chaos_proxy import ChaosProxy
from tests.support.stack import Stack, eventually


async def test_answers_are_typed_and_refusals_are_errors_with_a_code(stack: Stack) -> None:
    """What an answer holds, `tests.interfaces` looks at, for each call of the client."""
    async with AsyncReverie(stack.url, stack.key) as reverie:
        made = await reverie.remember("Lamps are lit at dusk.", kind="lesson", key="lamps")
        batch = await reverie.remember_batch([{"content": "Oil is below."}, {"content": ""}])
        assert [type(one).__name__ for one in batch.items] == ["RememberResponse", "Problem"]
        block = await reverie.recall_as_text("when are lamps lit?")
        assert block.startswith(OPEN_TAG)
        assert block.endswith(CLOSE_TAG)
        assert "Lamps are lit at dusk." in block
        assert str(made.id)[-8:] in block
        edited = await reverie.edit_memory(made.id, {"content": "Lamps are lit at six."}, version=1)
        assert edited.version == 2
        with pytest.raises(ApiError) as moved:
            await reverie.edit_memory(made.id, {"content": "Lamps are lit at five."}, version=1)
        assert moved.value.problem_code == "precondition_failed"
        with pytest.raises(ApiError, match="lamps") as taken:
            await reverie.remember("Lamps are lit at nine.", kind="lesson", key="lamps")
        assert (taken.value.status, taken.value.problem_code) == (409, "conflict")
        assert taken.value.problem.current is not None
        assert taken.value.problem.current["id"] == str(made.id)
        with pytest.raises(ApiError, match="archive"):
            await reverie.restore(made.id)
        with pytest.raises(ApiError) as kept:
            await reverie.delete_tenant("another")
        assert kept.value.status == 422
        with pytest.raises(ApiError, match=r"has no GET /v1/tides: it may be older") as older:
            await reverie.call("GET", "/v1/tides")
        assert older.value.problem_code == "not_found"


async def test_a_session_is_a_block_of_code_that_ends_even_if_it_fails(stack: Stack) -> None:
    async with AsyncReverie(stack.url, stack.key) as reverie:
        async with reverie.session("clerk", project="pier") as session:
            assert OPEN_TAG in session.context or session.context == ""
            text = "We always moor at the north side."
            said = await session.append_turn("user", text, external_id="1")
            again = await session.append_turn("user", text, external_id="1")
            assert (said.accepted, again.duplicates) == (1, 1)
            given = await session.preflow("where do we moor?")
            assert given.turn == 1
            assert (await reverie.confirm_delivery(str(given.trace_id))).delivered_at
            session.summary = "Where to moor."
        assert session.end_result is not None
        with pytest.raises(LookupError):
            async with reverie.session("clerk", project="pier") as broken:
                raise LookupError
        assert broken.end_result is not None
        assert len([one async for one in reverie.list_sessions(agent="clerk")]) == 2
        assert [one.role async for one in reverie.list_turns(session.id)] == ["user"]


async def test_the_synchronous_client_walks_lists_sessions_and_files(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.client.base.PAGE_SIZE", 5)
    await asyncio.to_thread(_walk, stack.url, stack.key)


def _walk(url: str, key: str) -> None:
    with Reverie(url, key) as reverie:
        reverie.remember_batch([{"content": f"Buoy {n} is red."} for n in range(12)])
        assert len(list(reverie.list_memories())) == 12
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
        assert file.count(b'"type": "memory"') == 12 or file.count(b'"type":"memory"') == 12
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
    async with asyncio.timeout(60):
        return await anext(heard)


async def _true(held: bool) -> bool:
    return held

"""Erasing the messages of a tenant, scope or memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID, uuid4

import pytest

from reverie.bus import erasure
from reverie.bus.dead_letters import DeadLetterOrigin, publish_dead_letter
from reverie.bus.erasure import ErasureTarget, erase_scope_messages, erase_tenant_messages
from reverie.bus.interface import Message, MessageBus
from reverie.contracts.events import (
    DEAD_LETTER_STREAM,
    DREAM_STREAM,
    ENGINE_STREAM,
    GIT_STREAM,
    MEMORY_STREAM,
    TURN_STREAM,
    dream_subject,
    engine_subject,
    git_subject,
    turn_subject,
)
from tests.bus.bus_cases import event, stored


async def test_the_messages_of_one_tenant_are_erased_from_every_stream_and_others_stay(
    bus: MessageBus,
) -> None:
    for tenant in ("one", "one-two"):
        subjects = [f"memory.{tenant}.remembered", git_subject(tenant, "shop")]
        subjects += [turn_subject(tenant, uuid4()), engine_subject(tenant, uuid4())]
        for subject in [*subjects, dream_subject(tenant, "global")]:
            await bus.publish(event(subject))
        dead = Message(f"memory.{tenant}.remembered", b"{}", {}, 1)
        await publish_dead_letter(
            bus, DeadLetterOrigin(MEMORY_STREAM, "ingest-enrich", tenant), dead, "broken"
        )
    assert await erase_tenant_messages(bus, "one") == {
        DEAD_LETTER_STREAM: 1,
        MEMORY_STREAM: 1,
        DREAM_STREAM: 1,
        GIT_STREAM: 1,
        TURN_STREAM: 1,
        ENGINE_STREAM: 1,
    }
    assert await erase_tenant_messages(bus, "one") == {
        DEAD_LETTER_STREAM: 0,
        MEMORY_STREAM: 0,
        DREAM_STREAM: 0,
        GIT_STREAM: 0,
        TURN_STREAM: 0,
        ENGINE_STREAM: 0,
    }
    for stream in (
        *(MEMORY_STREAM, DREAM_STREAM, GIT_STREAM, TURN_STREAM, ENGINE_STREAM, DEAD_LETTER_STREAM),
    ):
        [left] = await stored(bus, stream)
        assert "one-two" in left.subject


async def _none(_: Sequence[UUID]) -> set[UUID]:
    return set()


async def _forget(
    bus: MessageBus, lost: ErasureTarget, start: int = 0
) -> list[tuple[dict[str, int], int]]:
    return [
        (dict(+gone), place) async for gone, place in erase_scope_messages(bus, "one", lost, start)
    ]


async def _left(bus: MessageBus, stream: str) -> list[Any]:
    return [json.loads(one.data) for one in await stored(bus, stream)]


async def test_tickets_and_changes_are_erased_by_scope_and_project_including_dead_letters(
    bus: MessageBus,
) -> None:
    for scope in ("global", "project/shop", "project/shop/topic/a", "project/shopping"):
        subject, body = dream_subject("one", scope), json.dumps({"scope": scope})
        await bus.publish(event(subject, body))
        dead = Message(subject, body.encode(), {}, 1)
        await publish_dead_letter(
            bus, DeadLetterOrigin(DREAM_STREAM, "dream-workers", scope), dead, "broken"
        )
    for project in ("shop", "shopping"):
        body = json.dumps({"id": str(uuid4()), "project": project})
        await bus.publish(event(git_subject("one", project), body))
        dead = Message(git_subject("one", project), body.encode(), {}, 1)
        await publish_dead_letter(
            bus, DeadLetterOrigin(GIT_STREAM, "staleness-changes", project), dead, "broken"
        )
    pages = await _forget(bus, ErasureTarget(["project/shop", "project/shop/*"], "shop", _none))
    assert [gone for gone, _ in pages] == [
        {DREAM_STREAM: 2},
        {GIT_STREAM: 1},
        {DEAD_LETTER_STREAM: 3},
    ]
    kept = [{"scope": "global"}, {"scope": "project/shopping"}]
    assert await _left(bus, DREAM_STREAM) == kept
    [change] = await _left(bus, GIT_STREAM)
    assert change["project"] == "shopping"
    assert await _left(bus, DEAD_LETTER_STREAM) == [*kept, change]


async def test_events_of_deleted_memories_are_erased_and_all_others_stay(
    bus: MessageBus,
) -> None:
    kept, gone, edge = str(uuid4()), str(uuid4()), str(uuid4())
    stays = [{"id": kept}, {"scope": "global"}, {"id": edge, "from": kept, "to": kept}, [gone]]
    goes = [
        {"id": gone},
        {"id": edge, "from": gone, "to": kept},
        {"id": edge, "from": kept, "to": gone},
        {"id": kept, "merged": gone},
        {"id": kept, "by": gone},
        {"id": kept, "into": gone},
    ]
    for body in [*stays, *goes]:
        await bus.publish(event("memory.one.remembered", json.dumps(body)))
    await bus.publish(event("memory.two.remembered", json.dumps({"id": gone})))

    async def standing(ids: Sequence[UUID]) -> set[UUID]:
        return {UUID(kept)} & set(ids)

    lost = ErasureTarget([], None, standing)
    [(removed, place)] = await _forget(bus, lost)
    assert removed == {MEMORY_STREAM: len(goes)}
    assert await _left(bus, MEMORY_STREAM) == [*stays, {"id": gone}]
    assert await _forget(bus, lost, place) == []


async def test_messages_are_erased_page_by_page_from_any_start(
    bus: MessageBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "PAGE", 2)
    for _ in range(5):
        await bus.publish(event("memory.one.remembered", json.dumps({"id": str(uuid4())})))
    lost = ErasureTarget([], None, _none)
    async with aclosing(erase_scope_messages(bus, "one", lost)) as pages:
        first, place = await anext(pages)
    assert first == {MEMORY_STREAM: 2}
    assert [gone for gone, _ in await _forget(bus, lost, place)] == [
        {MEMORY_STREAM: 2},
        {MEMORY_STREAM: 1},
    ]
    assert await stored(bus) == []

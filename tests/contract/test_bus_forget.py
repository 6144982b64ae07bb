"""What a tenant or a memory leaves on the bus is taken off it, on NATS and on its twin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.contract.bus_cases import event, stored

from reverie.bus import forget
from reverie.bus.dead import Origin, bury
from reverie.bus.forget import Lost, forget_scopes, forget_tenant
from reverie.bus.port import Bus, Message
from reverie.contracts.events import DEAD, DREAM, GIT, MEMORY, dream_subject, git_subject


async def test_the_messages_of_a_tenant_go_from_every_stream_and_anothers_stay(bus: Bus) -> None:
    for tenant in ("one", "one-two"):
        subjects = [f"memory.{tenant}.remembered", git_subject(tenant, "shop")]
        for subject in [*subjects, dream_subject(tenant, "global")]:
            await bus.publish(event(subject))
        dead = Message(f"memory.{tenant}.remembered", b"{}", {}, 1)
        await bury(bus, Origin(MEMORY, "ingest-enrich", tenant), dead, "broken")
    assert await forget_tenant(bus, "one") == {DEAD: 1, MEMORY: 1, DREAM: 1, GIT: 1}
    assert await forget_tenant(bus, "one") == {DEAD: 0, MEMORY: 0, DREAM: 0, GIT: 0}
    for stream in (MEMORY, DREAM, GIT, DEAD):
        [left] = await stored(bus, stream)
        assert "one-two" in left.subject


async def _none(_: Sequence[UUID]) -> set[UUID]:
    return set()


async def _forget(bus: Bus, lost: Lost, start: int = 0) -> list[tuple[dict[str, int], int]]:
    return [(dict(+gone), place) async for gone, place in forget_scopes(bus, "one", lost, start)]


async def _left(bus: Bus, stream: str) -> list[Any]:
    return [json.loads(one.data) for one in await stored(bus, stream)]


async def test_tickets_and_changes_go_by_their_scope_and_project_dead_ones_too(bus: Bus) -> None:
    for scope in ("global", "project/shop", "project/shop/topic/a", "project/shopping"):
        subject, body = dream_subject("one", scope), json.dumps({"scope": scope})
        await bus.publish(event(subject, body))
        dead = Message(subject, body.encode(), {}, 1)
        await bury(bus, Origin(DREAM, "dream-workers", scope), dead, "broken")
    for project in ("shop", "shopping"):
        body = json.dumps({"id": str(uuid4()), "project": project})
        await bus.publish(event(git_subject("one", project), body))
        dead = Message(git_subject("one", project), body.encode(), {}, 1)
        await bury(bus, Origin(GIT, "staleness-changes", project), dead, "broken")
    pages = await _forget(bus, Lost(["project/shop", "project/shop/*"], "shop", _none))
    assert [gone for gone, _ in pages] == [{DREAM: 2}, {GIT: 1}, {DEAD: 3}]
    kept = [{"scope": "global"}, {"scope": "project/shopping"}]
    assert await _left(bus, DREAM) == kept
    [change] = await _left(bus, GIT)
    assert change["project"] == "shopping"
    assert await _left(bus, DEAD) == [*kept, change]


async def test_events_of_memories_that_stand_no_more_go_and_all_others_stay(bus: Bus) -> None:
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

    lost = Lost([], None, standing)
    [(removed, place)] = await _forget(bus, lost)
    assert removed == {MEMORY: len(goes)}
    assert await _left(bus, MEMORY) == [*stays, {"id": gone}]
    assert await _forget(bus, lost, place) == []


async def test_messages_are_forgotten_page_by_page_and_from_any_page_on(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "PAGE", 2)
    for _ in range(5):
        await bus.publish(event("memory.one.remembered", json.dumps({"id": str(uuid4())})))
    lost = Lost([], None, _none)
    async with aclosing(forget_scopes(bus, "one", lost)) as pages:
        first, place = await anext(pages)
    assert first == {MEMORY: 2}
    assert [gone for gone, _ in await _forget(bus, lost, place)] == [{MEMORY: 2}, {MEMORY: 1}]
    assert await stored(bus) == []

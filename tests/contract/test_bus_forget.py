"""What a tenant or a memory leaves on the bus is taken off it, on NATS and on its twin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID, uuid4

from tests.contract.bus_cases import event, stored

from reverie.bus.dead import Origin, bury
from reverie.bus.forget import forget_dreams, forget_memories, forget_tenant
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


async def test_tickets_go_by_their_scope(bus: Bus) -> None:
    for scope in ("global", "project/shop"):
        await bus.publish(event(dream_subject("one", scope)))
    assert await forget_dreams(bus, "one", ["project/shop", "project/none"]) == 1
    [left] = await stored(bus, DREAM)
    assert left.subject == dream_subject("one", "global")


async def test_events_of_memories_that_stand_no_more_go_and_all_others_stay(bus: Bus) -> None:
    kept, gone = uuid4(), uuid4()
    for body in ({"id": str(kept)}, {"id": str(gone)}, {"scope": "global"}, {"id": str(gone)}):
        await bus.publish(event("memory.one.remembered", json.dumps(body)))
    await bus.publish(event("memory.two.remembered", json.dumps({"id": str(gone)})))

    async def standing(ids: Sequence[UUID]) -> set[UUID]:
        return {kept} & set(ids)

    assert await forget_memories(bus, "one", standing) == 2
    left = [json.loads(one.data) for one in await stored(bus)]
    assert left == [{"id": str(kept)}, {"scope": "global"}, {"id": str(gone)}]

"""The outbox relay publishes each row once."""

from __future__ import annotations

import asyncio

from reverie.bus.consumer import consume
from reverie.bus.dead_letters import list_dead_letters
from reverie.bus.interface import MessageBus
from reverie.bus.outbox_relay import EventPublisher, drain_outbox, relay
from reverie.contracts.events import OutgoingEvent
from reverie.domain.core.ids import new_id
from tests.bus.bus_cases import (
    ENRICH,
    REMEMBERED,
    Inbox,
    Rows,
    event,
    running,
    settled,
    stored,
)


async def test_the_writer_publishes_and_clears_its_own_rows(bus: MessageBus) -> None:
    rows = [event(payload="one"), event(payload="two")]
    outbox = Rows(*rows)
    await EventPublisher(bus, outbox).publish(7, rows)
    assert outbox.deleted == [(row.id, 7) for row in rows]
    assert len(await stored(bus)) == 2


async def test_the_relay_publishes_the_rows_of_a_dead_writer_once(bus: MessageBus) -> None:
    inbox = Inbox()
    rows = [event(payload=str(n)) for n in range(25)]
    outbox = Rows(*rows)
    await bus.publish(rows[0])  # the writer died between its publish and its delete
    async with (
        running(relay(bus, outbox, interval=0.01, grace=5.0, batch=10)),
        running(consume(bus, ENRICH, inbox)),
    ):
        got = [int((await inbox.next()).data) for _ in range(25)]
        await settled(bus)
    assert sorted(got) == list(range(25))
    assert inbox.empty
    assert outbox.rows == {}


async def test_the_relay_leaves_fresh_rows_to_their_writer(bus: MessageBus) -> None:
    outbox = Rows(event(), age=1.0)
    assert await drain_outbox(bus, outbox, grace=5.0, batch=10) == 0
    assert len(outbox.rows) == 1


async def test_two_concurrent_relays_publish_each_row_once(bus: MessageBus) -> None:
    outbox = Rows(*[event() for _ in range(40)])
    swept = await asyncio.gather(*(drain_outbox(bus, outbox, 5.0, 10) for _ in range(2)))
    assert sum(swept) == 40
    assert len(await stored(bus)) == 40


async def test_poison_rows_do_not_block_the_rows_behind_them(bus: MessageBus) -> None:
    poison = [
        event(payload="x" * (bus.max_payload + 1)),
        event("memory.a b.remembered"),
        OutgoingEvent(id=new_id(), subject=REMEMBERED, payload="{}", headers={"bad name": "x"}),
    ]
    outbox = Rows(*poison, event(payload="good"))
    async with asyncio.timeout(60):
        await drain_outbox(bus, outbox, grace=5.0, batch=1)
    letters = await list_dead_letters(bus, "OUTBOX")
    assert outbox.rows == {}
    assert [letter.origin.ref for letter in letters] == [str(row.id) for row in poison]
    assert all(letter.reason for letter in letters)
    assert len(await stored(bus)) == 1

"""A consumer of each tenant: tenants take turns, whoever came first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import nats
import pytest

from reverie.bus.consumer import consume
from reverie.bus.dead_letters import handle_max_deliveries
from reverie.bus.interface import Message, MessageBus
from reverie.bus.jetstream_pull import (
    CONSUMERS_PER_PAGE,
    IDLE_SECONDS,
    MAX_IDLE_SECONDS,
    compute_pause,
)
from reverie.bus.streams import DEAD_LETTER_WATCHER, INGEST_ENRICH, INGEST_ENRICH_BULK
from reverie.contracts.events import BULK_HEADERS, memory_subject
from reverie.testing.servers import NatsServer
from tests.bus.bus_cases import Inbox, event, one_dead, running, settled, take, until

BULK = replace(INGEST_ENRICH_BULK, ack_wait=1.0, max_deliver=2, backoff=(0.05,))
PREFETCH = 2


async def _publish(bus: MessageBus, tenant: str, count: int) -> None:
    for number in range(count):
        subject = memory_subject(tenant, "remembered", BULK_HEADERS)
        await bus.publish(event(subject, f"{tenant} {number}"))


async def test_a_tenant_that_came_later_waits_for_one_turn_of_each_other(bus: MessageBus) -> None:
    inbox = Inbox()
    await _publish(bus, "first", 40)
    await _publish(bus, "second", 40)
    await _publish(bus, "third", 4)
    async with running(consume(bus, BULK, inbox, prefetch=PREFETCH)):
        handled = [(await inbox.next()).data.decode() for _ in range(84)]
        await settled(bus, BULK)
    of_each = {
        name: [one for one in handled if one.startswith(name)]
        for name in ("first", "second", "third")
    }
    assert [len(found) for found in of_each.values()] == [40, 40, 4]
    for name, found in of_each.items():
        assert found == [f"{name} {number}" for number in range(len(found))]
    assert handled.index("third 3") < 2 * 3 * PREFETCH


async def test_a_tenant_that_comes_while_others_work_gets_its_turn(bus: MessageBus) -> None:
    inbox = Inbox()
    await _publish(bus, "first", 40)

    async def slowly(message: Message) -> None:
        await inbox(message)
        await asyncio.sleep(0.01)

    async with running(consume(bus, BULK, slowly, prefetch=PREFETCH)):
        await inbox.next()
        await _publish(bus, "late", 1)
        before = 0
        while not (await inbox.next()).data.startswith(b"late"):
            before += 1
        assert before < 39
        await settled(bus, BULK)


async def test_more_tenants_than_the_server_lists_at_a_time_are_all_served(
    bus: MessageBus,
) -> None:
    inbox, tenants = Inbox(), [f"tenant-{number}" for number in range(CONSUMERS_PER_PAGE + 20)]
    for _ in range(2):
        await asyncio.gather(*(_publish(bus, tenant, 1) for tenant in tenants))
        async with running(consume(bus, BULK, inbox, concurrency=8)):
            handled = [(await inbox.next()).subject.split(".")[1] for _ in tenants]
            await settled(bus, BULK)
        assert sorted(handled) == sorted(tenants)
    assert inbox.empty


def test_a_look_that_was_held_up_does_not_hold_up_the_next_for_ten_times_as_long() -> None:
    assert compute_pause(0.0) == IDLE_SECONDS
    assert compute_pause(0.2) == pytest.approx(2.0)
    assert compute_pause(4.0) == MAX_IDLE_SECONDS == 5.0


async def test_single_and_bulk_messages_go_to_consumers_of_their_own(bus: MessageBus) -> None:
    single, bulk = Inbox(), Inbox()
    await _publish(bus, "acme", 3)
    await bus.publish(event(memory_subject("acme", "remembered"), "alone"))
    await bus.publish(event(memory_subject("acme", "edited", BULK_HEADERS), "not for them"))
    async with running(consume(bus, INGEST_ENRICH, single)):
        assert (await single.next()).data == b"alone"
        await settled(bus, INGEST_ENRICH)
        assert await bus.lag(BULK) == 3
    async with running(consume(bus, BULK, bulk)):
        assert [(await bulk.next()).data for _ in range(3)] == [b"acme 0", b"acme 1", b"acme 2"]
        await settled(bus, BULK)
    assert single.empty
    assert bulk.empty


async def test_a_consumer_of_an_earlier_version_is_configured_anew(
    bus: MessageBus, shared_nats: NatsServer
) -> None:
    inbox = Inbox()
    for spec in (replace(BULK, ack_wait=600.0, max_deliver=8), BULK):
        await _publish(bus, "acme", 1)
        async with running(consume(bus, spec, inbox)):
            await inbox.next()
            await settled(bus, spec)
    async with await nats.connect(shared_nats.url) as client:
        info = await client.jetstream().consumer_info(BULK.stream, f"{BULK.name}-acme")
    assert (info.config.ack_wait, info.config.max_deliver) == (BULK.ack_wait, BULK.max_deliver)


async def test_messages_that_a_stopped_worker_fetched_go_to_the_next_at_once(
    bus: MessageBus,
) -> None:
    inbox, patient = Inbox(), replace(BULK, ack_wait=600.0, max_deliver=8)
    await _publish(bus, "acme", 8)

    async def forever(message: Message) -> None:
        await inbox(message)
        await asyncio.Event().wait()

    async with running(consume(bus, patient, forever, prefetch=8)):
        await inbox.next()
    async with running(consume(bus, patient, inbox, prefetch=8)):
        handled = {(await inbox.next()).data for _ in range(8)}
        await settled(bus, patient)
    assert handled == {f"acme {number}".encode() for number in range(8)}


async def test_a_message_whose_workers_are_killed_each_time_is_dead_lettered(
    bus: MessageBus,
) -> None:
    await _publish(bus, "acme", 1)
    for _ in range(BULK.max_deliver):
        await take(bus, BULK)

    async def given_up() -> bool:
        # Somebody must ask for it, or the server does not notice that it was given up.
        return await bus.lag(BULK) == 0

    async with (
        running(consume(bus, BULK, Inbox())),
        running(consume(bus, DEAD_LETTER_WATCHER, partial(handle_max_deliveries, bus))),
    ):
        letter = await one_dead(bus)
        await until(given_up)
    assert letter.subject == "memory.acme.bulk.remembered"
    assert letter.origin.consumer == "ingest-enrich-bulk-acme"

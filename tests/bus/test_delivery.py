"""Delivery, deduplication, redelivery and ordering of messages."""

from __future__ import annotations

import asyncio
import json

import pytest

from reverie.bus.consumer import consume
from reverie.bus.interface import Message, MessageBus, Retry
from reverie.bus.streams import STALENESS_CHANGES
from reverie.contracts.events import DREAM_STREAM, git_subject, memory_subject
from reverie.domain.core.errors import InvalidInput, PayloadTooLarge, Unavailable
from tests.bus.bus_cases import (
    ENRICH,
    REMEMBERED,
    TICKET,
    WORKERS,
    Inbox,
    event,
    running,
    settled,
    stored,
    take,
    until,
)


async def test_a_published_event_reaches_the_handler_unchanged(bus: MessageBus) -> None:
    inbox = Inbox()
    await bus.publish(event(payload='{"größe": "七"}', origin="Zürich"))
    async with running(consume(bus, ENRICH, inbox)):
        message = await inbox.next()
    assert message.subject == REMEMBERED
    assert json.loads(message.data) == {"größe": "七"}
    assert message.headers["origin"] == "Zürich"
    assert message.deliveries == 1


async def test_the_same_event_published_twice_is_handled_once(bus: MessageBus) -> None:
    inbox, twice = Inbox(), event()
    await bus.publish(twice)
    await bus.publish(twice)
    await bus.publish(event(payload="the next"))
    async with running(consume(bus, ENRICH, inbox)):
        assert (await inbox.next()).data == b"{}"
        assert (await inbox.next()).data == b"the next"


async def test_only_subjects_that_match_the_filter_are_delivered(bus: MessageBus) -> None:
    inbox = Inbox()
    await bus.publish(event(memory_subject("acme", "enriched"), "not for us"))
    await bus.publish(event(payload="for us"))
    async with running(consume(bus, ENRICH, inbox)):
        assert (await inbox.next()).data == b"for us"


@pytest.mark.parametrize(
    "error", [RuntimeError("out of luck"), asyncio.CancelledError(), Retry(delay=0.1)]
)
async def test_a_message_whose_handler_failed_is_delivered_again(
    bus: MessageBus, error: BaseException
) -> None:
    inbox = Inbox()

    async def fail_first(message: Message) -> None:
        await inbox(message)
        if message.deliveries == 1:
            raise error

    await bus.publish(event())
    async with running(consume(bus, ENRICH, fail_first)) as worker:
        assert [(await inbox.next()).deliveries for _ in range(2)] == [1, 2]
        await settled(bus)
        assert not worker.done()
    # Once it was handled, it comes to nobody again.
    async with running(consume(bus, ENRICH, inbox)):
        await bus.publish(event(payload="the next"))
        assert (await inbox.next()).data == b"the next"


async def test_prefetched_messages_arrive_in_order_and_are_returned_on_stop(
    bus: MessageBus,
) -> None:
    begun, inbox = Inbox(), Inbox()
    numbers = [str(number).encode() for number in range(9)]

    async def never(message: Message) -> None:
        await begun(message)
        if message.data in numbers[2:]:
            await asyncio.Event().wait()

    for number in numbers:
        await bus.publish(event(git_subject("acme", "shop"), number.decode()))
    async with running(consume(bus, STALENESS_CHANGES, never, 2, prefetch=8)):
        assert [(await begun.next()).data for _ in range(4)] == numbers[:4]
    async with running(consume(bus, STALENESS_CHANGES, inbox, prefetch=4)):
        assert sorted([(await inbox.next()).data for _ in range(7)]) == numbers[2:]
        await settled(bus, STALENESS_CHANGES)
    assert inbox.empty


async def test_a_message_whose_worker_went_silent_goes_to_another(bus: MessageBus) -> None:
    inbox = Inbox()
    await bus.publish(event())
    await take(bus, ENRICH)
    async with running(consume(bus, ENRICH, inbox)):
        assert (await inbox.next()).deliveries == 2


async def test_a_long_handler_keeps_its_message_by_reporting_progress(bus: MessageBus) -> None:
    begun = Inbox()

    async def long(message: Message) -> None:
        await begun(message)
        await asyncio.sleep(2.5 * ENRICH.ack_wait)

    await bus.publish(event())
    async with running(consume(bus, ENRICH, long, concurrency=2)):
        await begun.next()
        await settled(bus)
    assert begun.empty


async def test_as_many_as_configured_are_started_at_once_in_the_order_of_arrival(
    bus: MessageBus,
) -> None:
    begun, gate = Inbox(), asyncio.Event()
    for number in range(12):
        await bus.publish(event(payload=str(number)))

    async def long(message: Message) -> None:
        await begun(message)
        await gate.wait()

    async with running(consume(bus, ENRICH, long, concurrency=4)):
        first = [(await begun.next()).data for _ in range(4)]
        gate.set()
        rest = [(await begun.next()).data for _ in range(8)]
        await settled(bus)
    assert [*first, *rest] == [str(number).encode() for number in range(12)]


async def test_two_tickets_for_one_scope_are_one_message(bus: MessageBus) -> None:
    inbox = Inbox()
    await bus.publish(event(TICKET, "first"))
    await bus.publish(event(TICKET, "second"))
    assert [message.data for message in await stored(bus, DREAM_STREAM)] == [b"first"]
    async with running(consume(bus, WORKERS, inbox)):
        assert (await inbox.next()).data == b"first"
        await settled(bus, WORKERS)
        await bus.publish(event(TICKET, "third"))
        assert (await inbox.next()).data == b"third"


async def test_an_oversized_payload_is_refused(bus: MessageBus) -> None:
    with pytest.raises(PayloadTooLarge) as caught:
        await bus.publish(event(payload="x" * (bus.max_payload + 1)))
    assert caught.value.limit == bus.max_payload
    assert await stored(bus) == []


async def test_an_invalid_or_unknown_subject_is_refused(bus: MessageBus) -> None:
    for subject in ("", "memory.a b.remembered", "memory.a\r\nPUB x.remembered"):
        with pytest.raises(InvalidInput):
            await bus.publish(event(subject))
    with pytest.raises(Unavailable):
        await bus.publish(event("weather.today"))


async def test_the_lag_counts_waiting_and_unacknowledged_messages(bus: MessageBus) -> None:
    for _ in range(3):
        await bus.publish(event())

    async def lags(by: int) -> None:
        async def so() -> bool:
            return await bus.lag(ENRICH) == by

        await until(so)

    await lags(3)
    delivery = await take(bus, ENRICH)
    await lags(3)
    await delivery.ack()
    await lags(2)

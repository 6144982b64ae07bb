"""Dead letters are stored with a reason, listed and replayed."""

from __future__ import annotations

import json
from functools import partial
from unittest.mock import AsyncMock

import pytest

from reverie.bus.consumer import consume
from reverie.bus.dead_letters import handle_max_deliveries, list_dead_letters, replay_dead_letters
from reverie.bus.interface import Message, MessageBus, Reject
from reverie.bus.streams import DEAD_LETTER_WATCHER
from reverie.contracts.events import DREAM_STREAM, MEMORY_STREAM
from reverie.domain.core.errors import Conflict, NotFound
from tests.bus.bus_cases import (
    ENRICH,
    REMEMBERED,
    TICKET,
    WORKERS,
    Inbox,
    event,
    failing_on,
    one_dead,
    running,
    settled,
    stored,
    take,
    until,
)


async def test_poison_messages_become_dead_letters_and_the_rest_continues(
    bus: MessageBus,
) -> None:
    inbox = Inbox()
    await bus.publish(event(payload="poison", origin="here"))
    await bus.publish(event(payload="wholesome"))
    async with running(consume(bus, ENRICH, failing_on("poison", Reject("no id in it"), inbox))):
        assert (await inbox.next()).data == b"wholesome"
        letter = await one_dead(bus)
        await settled(bus)
    assert (letter.subject, letter.data, letter.reason) == (REMEMBERED, b"poison", "no id in it")
    assert (letter.origin.stream, letter.origin.consumer) == (MEMORY_STREAM, "ingest-enrich")
    assert letter.deliveries == 1
    assert letter.headers["origin"] == "here"
    assert not any(name.startswith("Nats-") for name in letter.headers)


async def test_the_last_allowed_delivery_that_fails_is_dead_lettered_with_its_error(
    bus: MessageBus,
) -> None:
    inbox = Inbox()
    error = ValueError("first line\nsecond line: a quoted value")
    await bus.publish(event(payload="bad"))
    async with running(consume(bus, ENRICH, failing_on("bad", error, inbox))):
        letter = await one_dead(bus)
        await settled(bus)
    assert letter.reason == "delivery 3 of 3 failed: ValueError: first line"
    assert letter.deliveries == 3


async def test_a_rejected_ticket_frees_its_subject(bus: MessageBus) -> None:
    inbox = Inbox()
    await bus.publish(event(TICKET, "poison"))
    async with running(consume(bus, WORKERS, failing_on("poison", Reject("no"), inbox))):
        await one_dead(bus)
        await settled(bus, WORKERS)
        await bus.publish(event(TICKET, "wholesome"))
        assert (await inbox.next()).data == b"wholesome"


async def test_a_ticket_whose_workers_all_died_blocks_its_subject_until_the_watcher_buries_it(
    bus: MessageBus,
) -> None:
    """By itself the server keeps the ticket, takes no other, and makes no dead letter."""
    inbox = Inbox()
    await bus.publish(event(TICKET, "cursed"))
    for _ in range(WORKERS.max_deliver):
        await take(bus)

    async def given_up() -> bool:
        return await bus.lag(DEAD_LETTER_WATCHER) == 1

    async with running(consume(bus, WORKERS, inbox)):
        await until(given_up)
        await bus.publish(event(TICKET, "refused"))
        assert [message.data for message in await stored(bus, DREAM_STREAM)] == [b"cursed"]
        assert await list_dead_letters(bus) == []
        assert inbox.empty
        async with running(consume(bus, DEAD_LETTER_WATCHER, partial(handle_max_deliveries, bus))):
            letter = await one_dead(bus, DREAM_STREAM)
            await settled(bus, DEAD_LETTER_WATCHER)
            await bus.publish(event(TICKET, "the next"))
            assert (await inbox.next()).data == b"the next"
    assert letter.data == b"cursed"
    assert letter.deliveries == WORKERS.max_deliver
    assert "no worker answered" in letter.reason


async def test_an_advisory_is_rejected_if_invalid_and_ignored_about_a_foreign_consumer(
    bus: MessageBus,
) -> None:
    await bus.publish(event(TICKET))
    foreign = {"stream": "DREAM", "consumer": "somebody", "stream_seq": 1, "deliveries": 9}
    await handle_max_deliveries(bus, Message("", json.dumps(foreign).encode(), {}, 1))
    assert await list_dead_letters(bus) == []
    assert await bus.read("DREAM", 1) is not None
    with pytest.raises(Reject):
        await handle_max_deliveries(bus, Message("", b"[]", {}, 1))


async def bury_some(bus: MessageBus, *payloads: str, waiting: int = 0) -> None:
    """Bury these, and the `waiting` messages that are in the stream already."""
    for payload in payloads:
        await bus.publish(event(payload=payload))
    before = len(await list_dead_letters(bus))

    async def refuse(_: Message) -> None:
        raise Reject("refused")

    async def all_there() -> bool:
        return len(await list_dead_letters(bus)) == before + len(payloads) + waiting

    async with running(consume(bus, ENRICH, refuse)):
        await until(all_there)
        await settled(bus)


async def test_a_replay_that_dies_before_it_removes_the_letter_is_repeated_without_a_second_message(
    bus: MessageBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = Inbox()
    await bury_some(bus, "one")
    (letter,) = await list_dead_letters(bus)
    with monkeypatch.context() as dying:
        dying.setattr(bus, "remove", AsyncMock(side_effect=ConnectionError))
        with pytest.raises(ConnectionError):
            await replay_dead_letters(bus, seq=letter.seq)
    assert await replay_dead_letters(bus, seq=letter.seq) == 1
    assert await list_dead_letters(bus) == []
    await bus.publish(event(payload="next"))
    async with running(consume(bus, ENRICH, inbox)):
        assert {(await inbox.next()).data for _ in range(2)} == {b"one", b"next"}


async def test_dead_letters_are_listed_in_pages_and_replayed_by_stream(bus: MessageBus) -> None:
    inbox = Inbox()
    await bury_some(bus, "a", "b", "c")
    first = await list_dead_letters(bus, limit=2)
    rest = await list_dead_letters(bus, limit=2, after=first[-1].seq)
    assert [letter.data for letter in first + rest] == [b"a", b"b", b"c"]
    assert await list_dead_letters(bus, stream="DREAM") == []
    with pytest.raises(NotFound):
        await replay_dead_letters(bus, seq=77)
    assert await replay_dead_letters(bus, stream="GIT") == 0
    assert await replay_dead_letters(bus, stream=MEMORY_STREAM) == 3
    assert await list_dead_letters(bus) == []
    async with running(consume(bus, ENRICH, inbox)):
        messages = [await inbox.next() for _ in range(3)]
    assert {message.data for message in messages} == {b"a", b"b", b"c"}
    assert {(message.subject, message.deliveries) for message in messages} == {(REMEMBERED, 1)}


async def test_a_letter_that_fails_again_after_its_replay_is_stored_again(bus: MessageBus) -> None:
    await bury_some(bus, "hopeless")
    assert await replay_dead_letters(bus) == 1
    await bury_some(bus, waiting=1)
    assert [letter.data for letter in await list_dead_letters(bus)] == [b"hopeless"]


async def test_an_oversized_foreign_body_is_dead_lettered_without_it(bus: MessageBus) -> None:
    await bus.send(REMEMBERED, b"x" * (bus.max_payload + 1), {})
    await bury_some(bus, waiting=1)
    (letter,) = await list_dead_letters(bus)
    assert (letter.data, letter.dropped_bytes) == (b"", bus.max_payload + 1)
    with pytest.raises(Conflict):
        await replay_dead_letters(bus, seq=letter.seq)
    assert await replay_dead_letters(bus) == 0

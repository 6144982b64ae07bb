"""Watching a stream from a sequence number."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from reverie.bus.interface import MessageBus, StoredMessage
from reverie.bus.nats_bus import connect
from reverie.bus.streams import ensure_streams
from reverie.contracts.events import MEMORY_STREAM, OutgoingEvent, memory_subject
from reverie.domain.core.errors import Unavailable
from reverie.testing.servers import NatsServer
from tests.bus.bus_cases import SPECS, event, until

ALL = memory_subject("acme", ">")


async def _taken(
    bus: MessageBus, after: int, count: int, subject: str = ALL
) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    async with asyncio.timeout(60), aclosing(bus.watch(MEMORY_STREAM, subject, after)) as watch:
        async for one in watch:
            found.append(one)
            if len(found) == count:
                break
    return found


async def _published(bus: MessageBus, outgoing: OutgoingEvent) -> None:
    """Published, however often the connection breaks meanwhile: the id makes it once."""

    async def sent() -> bool:
        with suppress(Unavailable):
            await bus.publish(outgoing)
            return True
        return False

    await until(sent)


async def test_a_watch_yields_stored_messages_and_then_new_ones_in_order(bus: MessageBus) -> None:
    assert await bus.sequence_range(MEMORY_STREAM) == (1, 0)
    for number in range(3):
        await bus.publish(event(payload=str(number)))
    assert await bus.sequence_range(MEMORY_STREAM) == (1, 3)
    watching = asyncio.create_task(_taken(bus, 0, 5))
    for number in range(3, 5):
        await bus.publish(event(payload=str(number)))
    found = await watching
    assert [one.data for one in found] == [b"0", b"1", b"2", b"3", b"4"]
    assert [one.seq for one in found] == [1, 2, 3, 4, 5]


async def test_a_watch_resumes_after_a_number_and_yields_only_its_subjects(bus: MessageBus) -> None:
    for tenant in ("acme", "other", "acme", "acme"):
        await bus.publish(event(memory_subject(tenant, "task")))
    assert [one.seq for one in await _taken(bus, 1, 2)] == [3, 4]
    await bus.publish(event(memory_subject("acme", "linked")))
    assert [one.seq for one in await _taken(bus, 0, 1, memory_subject("acme", "linked"))] == [5]


async def test_a_watch_acknowledges_nothing_and_several_see_the_same(bus: MessageBus) -> None:
    await bus.publish(event())
    assert [await _taken(bus, 0, 1) for _ in range(2)] == [await _taken(bus, 0, 1)] * 2


async def test_a_message_that_is_gone_can_be_removed_again(bus: MessageBus) -> None:
    for _ in range(3):
        await bus.publish(event())
    # The server's answers differ: within what it holds, before it and after it.
    for seq in (2, 2, 1, 1, 99):
        await bus.remove(MEMORY_STREAM, seq)
    assert await bus.sequence_range(MEMORY_STREAM) == (3, 3)
    await bus.remove(MEMORY_STREAM, 3)
    assert await bus.sequence_range(MEMORY_STREAM) == (4, 3)


async def test_a_watch_survives_a_server_restart_without_loss_or_repetition(
    nats_server: NatsServer,
) -> None:
    await ensure_streams(nats_server.url, consumers=SPECS)
    async with connect(nats_server.url, "contract") as bus:
        assert await bus.wait_connected(30)
        seen: list[bytes] = []
        half = asyncio.Event()

        async def watch() -> None:
            async with aclosing(bus.watch(MEMORY_STREAM, ALL, 0)) as found:
                async for one in found:
                    seen.append(one.data)
                    half.set()
                    if len(seen) == 6:
                        return

        watching = asyncio.create_task(watch())
        for number in range(3):
            await bus.publish(event(payload=str(number)))
        await half.wait()
        nats_server.kill()
        nats_server.start()
        for number in range(3, 6):
            await _published(bus, event(payload=str(number)))
        async with asyncio.timeout(60):
            await watching
        assert seen == [b"0", b"1", b"2", b"3", b"4", b"5"]

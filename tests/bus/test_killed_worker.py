"""The dream ticket of a killed worker becomes a dead letter and frees its scope."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial

from reverie.bus.consumer import consume
from reverie.bus.dead_letters import handle_max_deliveries, list_dead_letters
from reverie.bus.nats_bus import connect
from reverie.bus.streams import DEAD_LETTER_WATCHER, DREAM_WORKERS, ensure_streams
from tests.bus.bus_cases import TICKET, Inbox, event, one_dead, running, settled

WORKERS = replace(DREAM_WORKERS, ack_wait=1.0, max_deliver=2)

WORKER = """
import asyncio, sys
from dataclasses import replace
from reverie.bus.nats_bus import connect
from reverie.bus.consumer import consume
from reverie.bus.streams import DREAM_WORKERS

async def handle(message):
    print("delivery", message.deliveries, flush=True)
    await asyncio.Event().wait()

async def main():
    async with connect(sys.argv[1], "doomed") as bus:
        await consume(bus, replace(DREAM_WORKERS, ack_wait=1.0, max_deliver=2), handle)

asyncio.run(main())
"""


async def delivery_that_kills(url: str) -> int:
    """Run a worker until it has a ticket in hand, then kill -9; the delivery it got."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert worker.stdout is not None
        async with asyncio.timeout(60):
            async for line in worker.stdout:
                if line.startswith(b"delivery "):
                    return int(line.split()[1])
        raise AssertionError("the worker ended by itself")
    finally:
        worker.kill()
        await worker.communicate()


async def test_the_ticket_becomes_a_dead_letter_and_its_scope_can_be_requested_again(
    nats_url: str,
) -> None:
    await ensure_streams(nats_url, consumers=[WORKERS, DEAD_LETTER_WATCHER])
    async with connect(nats_url, "witness") as bus:
        assert await bus.wait_connected(30)
        await bus.publish(event(TICKET, "cursed"))
        assert [await delivery_that_kills(nats_url) for _ in range(2)] == [1, 2]
        inbox = Inbox()
        async with (
            running(consume(bus, WORKERS, inbox)),
            running(
                consume(
                    bus, DEAD_LETTER_WATCHER, partial(handle_max_deliveries, bus), concurrency=2
                )
            ),
        ):
            letter = await one_dead(bus)
            await settled(bus, DEAD_LETTER_WATCHER)
            await bus.publish(event(TICKET, "the next"))
            assert (await inbox.next()).data == b"the next"
    assert (letter.subject, letter.data, letter.deliveries) == (TICKET, b"cursed", 2)


async def test_without_the_watcher_the_subject_would_stay_blocked(nats_url: str) -> None:
    """What the watcher is for: the server alone keeps the ticket and takes no other."""
    await ensure_streams(nats_url, consumers=[WORKERS, DEAD_LETTER_WATCHER])
    async with connect(nats_url, "witness") as bus:
        assert await bus.wait_connected(30)
        await bus.publish(event(TICKET, "cursed"))
        for _ in range(2):
            await delivery_that_kills(nats_url)
        async with running(consume(bus, WORKERS, Inbox())):
            async with asyncio.timeout(60):
                while True:
                    if await bus.lag(DEAD_LETTER_WATCHER) == 1:
                        break
                    await asyncio.sleep(0.05)
            await bus.publish(event(TICKET, "refused"))
            stored = await bus.read("DREAM", 1)
        assert stored is not None
        assert stored.data == b"cursed"
        assert await bus.read("DREAM", 2) is None
        assert await list_dead_letters(bus) == []

"""Events, consumer specs with short waits, and recording handlers for the bus tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from uuid import UUID

from reverie.bus.consumer import MessageHandler
from reverie.bus.dead_letters import DeadLetter, list_dead_letters
from reverie.bus.interface import Delivery, Message, MessageBus, StoredMessage
from reverie.bus.streams import (
    DEAD_LETTER_WATCHER,
    DREAM_WORKERS,
    INGEST_ENRICH,
    STALENESS_CHANGES,
    ConsumerSpec,
)
from reverie.contracts.events import MEMORY_STREAM, OutgoingEvent, dream_subject, memory_subject
from reverie.domain.core.ids import new_id

REMEMBERED = memory_subject("acme", "remembered")
TICKET = dream_subject("acme", "project/shop")
ENRICH = replace(INGEST_ENRICH, ack_wait=1.0, max_deliver=3, backoff=(0.05,))
WORKERS = replace(DREAM_WORKERS, ack_wait=1.0, max_deliver=2, backoff=(0.05,))
SPECS = (ENRICH, WORKERS, STALENESS_CHANGES, DEAD_LETTER_WATCHER)


def event(subject: str = REMEMBERED, payload: str = "{}", **headers: str) -> OutgoingEvent:
    return OutgoingEvent(id=new_id(), subject=subject, payload=payload, headers=headers)


class Inbox:
    """A handler that keeps what it got."""

    def __init__(self) -> None:
        self._got: asyncio.Queue[Message] = asyncio.Queue()

    async def __call__(self, message: Message) -> None:
        self._got.put_nowait(message)

    async def next(self) -> Message:
        async with asyncio.timeout(60):
            return await self._got.get()

    @property
    def empty(self) -> bool:
        return self._got.empty()


@asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(work)
    assert isinstance(task, asyncio.Task)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.02)


async def one_dead(bus: MessageBus, stream: str | None = None) -> DeadLetter:
    async def there() -> bool:
        return bool(await list_dead_letters(bus, stream))

    await until(there)
    (letter,) = await list_dead_letters(bus, stream)
    return letter


async def stored(bus: MessageBus, stream: str = MEMORY_STREAM) -> list[StoredMessage]:
    """All that lies in a stream."""
    found: list[StoredMessage] = []
    while message := await bus.read(stream, found[-1].seq + 1 if found else 1, ">"):
        found.append(message)
    return found


async def settled(bus: MessageBus, spec: ConsumerSpec = ENRICH) -> None:
    """Wait for the last acknowledgement; to be called after a handler saw the last message, since
    a server counts a new message a moment after it confirmed it."""

    async def idle() -> bool:
        return await bus.lag(spec) == 0

    await until(idle)


async def take(bus: MessageBus, spec: ConsumerSpec = WORKERS) -> Delivery:
    """One message, in the hands of a worker that is then heard of no more."""
    async with asyncio.timeout(60), aclosing(bus.deliveries(spec)) as deliveries:
        return await anext(deliveries)


def failing_on(bad: str, error: Exception, inbox: Inbox) -> MessageHandler:
    async def handle(message: Message) -> None:
        if message.data == bad.encode():
            raise error
        await inbox(message)

    return handle


class Rows:
    """An outbox in memory: rows with their age in seconds, locked while claimed."""

    def __init__(self, *rows: OutgoingEvent, age: float = 60.0):
        self.rows = {row.id: (row, age) for row in rows}
        self.locked: set[UUID] = set()
        self.deleted: list[tuple[UUID, int]] = []
        self.claims = 0

    @asynccontextmanager
    async def claim(self, limit: int, older_than: float) -> AsyncIterator[RowClaim]:
        self.claims += 1
        free = [
            row
            for row, age in self.rows.values()
            if age >= older_than and row.id not in self.locked
        ][:limit]
        mine = {row.id for row in free}
        self.locked |= mine
        try:
            yield RowClaim(self, free)
        finally:
            self.locked -= mine

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        self.deleted += [(id_, tenant) for id_ in ids]
        for id_ in ids:
            self.rows.pop(id_, None)


class RowClaim:
    def __init__(self, outbox: Rows, rows: Sequence[OutgoingEvent]):
        self._outbox = outbox
        self.rows = rows

    async def done(self, ids: Sequence[UUID]) -> None:
        for id_ in ids:
            del self._outbox.rows[id_]

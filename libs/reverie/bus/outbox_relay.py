"""The transactional outbox: publish after a write, and sweep the rows that were left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import structlog

from reverie.bus.dead_letters import DeadLetterOrigin, publish_dead_letter
from reverie.bus.interface import Message, MessageBus
from reverie.contracts.events import OutgoingEvent
from reverie.domain.core.errors import InvalidInput, PayloadTooLarge, Unavailable

log = structlog.get_logger("reverie.bus")


class OutboxBatch(Protocol):
    """Outbox rows that are this relay's while the claim is open."""

    @property
    def rows(self) -> Sequence[OutgoingEvent]:
        """The oldest first."""

    async def done(self, ids: Sequence[UUID]) -> None:
        """Delete these rows when the claim closes: they are on the bus."""


class Outbox(Protocol):
    """The table where a write leaves its events, in its own transaction."""

    def claim(self, limit: int, older_than: float) -> AbstractAsyncContextManager[OutboxBatch]:
        """Locks up to `limit` rows of any tenant older than `older_than` seconds.

        Rows locked by another relay are skipped (`for update skip locked`). Rows not reported done
        are unlocked when the claim closes.
        """

    async def delete(self, ids: Sequence[UUID], tenant: int) -> None:
        """Delete a tenant's rows that their writer has published itself."""


class SupportsAfterReply(Protocol):
    """A call that runs jobs once its reply has left."""

    def run_after_reply(self, job: Callable[[], Awaitable[None]]) -> None: ...


@dataclass(frozen=True)
class EventPublisher:
    """Publishes the events of a write at once; the relay publishes later what it cannot."""

    bus: MessageBus
    outbox: Outbox

    async def publish(self, tenant: int, events: Sequence[OutgoingEvent]) -> None:
        """Publish what a write just stored and delete it from the outbox; never raises for a bus
        or a store that is away."""
        try:
            for event in events:
                await self.bus.publish(event)
            await self.outbox.delete([event.id for event in events], tenant)
        except (Unavailable, PayloadTooLarge, InvalidInput) as error:
            log.info("publish_deferred_to_relay", events=len(events), error=type(error).__name__)

    def publish_after_reply(
        self, call: SupportsAfterReply, tenant: int, events: Sequence[OutgoingEvent]
    ) -> None:
        """Publish the events of a write once the reply to the call has left."""
        if events:
            call.run_after_reply(lambda: self.publish(tenant, events))


async def relay(
    bus: MessageBus, outbox: Outbox, interval: float = 1.0, grace: float = 5.0, batch: int = 100
) -> None:
    """Relays the outbox without end: every `interval` seconds, rows older than `grace` seconds.

    Reads `batch` rows at a time until the outbox is empty; only while the bus is connected. Cancel
    it to stop.
    """
    while True:
        if bus.connected:
            # A background loop must outlive whatever the store raises while it is away.
            try:
                if published := await drain_outbox(bus, outbox, grace, batch):
                    log.info("outbox_swept", events=published)
            except Exception as error:
                log.warning("outbox_sweep_failed", error=type(error).__name__, exc_info=error)
        await asyncio.sleep(interval)


async def drain_outbox(bus: MessageBus, outbox: Outbox, grace: float, batch: int) -> int:
    """Publish every row older than `grace` seconds, or all until the bus fails; how many."""
    published = 0
    while True:
        async with outbox.claim(batch, grace) as claim:
            rows = claim.rows
            results = await asyncio.gather(*(_publish_row(bus, row) for row in rows))
            published_ids = [
                row.id for row, is_published in zip(rows, results, strict=True) if is_published
            ]
            if published_ids:
                await claim.done(published_ids)
        published += len(published_ids)
        if len(published_ids) < len(rows) or len(rows) < batch:
            return published


async def _publish_row(bus: MessageBus, row: OutgoingEvent) -> bool:
    """Whether the row was published, or sent to the dead letters because no server accepts it."""
    try:
        await bus.publish(row)
    except Unavailable:
        return False
    except (PayloadTooLarge, InvalidInput) as error:
        return await _dead_letter_row(bus, row, str(error))
    return True


async def _dead_letter_row(bus: MessageBus, row: OutgoingEvent, reason: str) -> bool:
    """Sends a row that no server accepts to the dead letters.

    Otherwise it would always be claimed first and block the rows behind it.
    """
    log.error("outbox_row_dead_lettered", id=str(row.id), reason=reason)
    tokens = (re.sub(r"[^\w-]", "_", token) for token in row.subject.split("."))
    subject = ".".join(token or "_" for token in tokens)
    origin = DeadLetterOrigin("OUTBOX", "relay", str(row.id))
    try:
        message = Message(subject, row.payload.encode(), {}, 0)
        await publish_dead_letter(bus, origin, message, reason)
    except Unavailable:
        return False
    return True

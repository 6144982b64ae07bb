"""The clock: finds what a lost event or a silent session left behind. One leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.contracts.events import TEND_SUBJECT, outgoing
from reverie.domain.errors import ReverieError, Unavailable
from reverie.ingest.derive import derive
from reverie.ingest.parts import Parts
from reverie.ingest.ranks import rank_all
from reverie.store.dreams import Wanted

log = structlog.get_logger("reverie.ingest")

ROUND = 50
DREAMS = 100
MAX_LEFT = 10_000
AGAIN_SECONDS = 3600.0
RING_SECONDS = 60.0

Missed = tuple[int, str, UUID]
"""A tenant's number and name, and a memory that its event did not reach."""


@dataclass
class Left:
    """Memories that a round of this process could not finish, so that others get their turn.

    Without a model a memory has its anchors and stays due; some fail each time. They are tried
    again after `AGAIN_SECONDS`, and when the model comes.
    """

    ids: set[UUID] = field(default_factory=set)
    model: bool = False
    until: float = 0.0

    def renewed(self, model: bool, now: float) -> None:
        """Forgets all where the model came or went, or their time is over; `now` in seconds."""
        if model != self.model or now >= self.until:
            self.ids.clear()
            self.model, self.until = model, now + AGAIN_SECONDS


@dataclass
class Bell:
    """Wakes a worker while some tenant is due to be tended and nobody is at it, for memories are
    tended also where nobody talks and no worker runs. One too many does nothing."""

    due: float = 0.0

    async def ring(self, parts: Parts, now: float) -> None:
        """Rings where it is wanted, every `RING_SECONDS` at most; `now` in seconds."""
        if now >= self.due and await parts.tending.waits(parts.settings.tend_seconds):
            await parts.bus.publish(outgoing(0, TEND_SUBJECT, {}, {}))
            self.due = now + RING_SECONDS


async def keep_time(parts: Parts) -> None:
    """Does the rounds for ever, the next at once while there is more to do. Cancel it to stop."""
    left, bell = Left(), Bell()
    more = False
    while True:
        await asyncio.sleep(0 if more else parts.settings.sweep_seconds)
        more = await _round(parts, left, bell)


async def _round(parts: Parts, left: Left, bell: Bell) -> bool:
    """One round; whether it found as much as a round takes, and so did not see all."""
    try:
        async with parts.clock.turn() as leader:
            asked = await ask_for_dreams(parts) if leader else 0
            if leader:
                await _ring(parts, bell)
            missed = await do_rounds(parts, left) if leader else []
            unranked = await parts.ranks.due(ROUND) if leader else []
        # Outside the turn, whose transaction must not be open while a model works.
        await _enrich_all(parts, missed, left)
        await rank_all(parts, unranked)
    except ReverieError as error:
        log.warning("rounds_put_off", reason=str(error))
        return False
    return len(missed) == ROUND or asked == DREAMS


async def _ring(parts: Parts, bell: Bell) -> None:
    with suppress(Unavailable):
        await bell.ring(parts, monotonic())


async def ask_for_dreams(parts: Parts) -> int:
    """Asks for dreams over scopes that are due and renews lost tickets; how many were due."""
    wanted = await parts.dreams.wanted(parts.settings.dream_limits, DREAMS)
    for one in wanted:
        await _ask(parts, one)
    for ticket in await parts.dreams.overdue(parts.settings.sweep_age):
        with suppress(Unavailable):
            await parts.bus.publish(ticket)
    return len(wanted)


async def do_rounds(parts: Parts, left: Left) -> list[Missed]:
    """Sweeps what is kept for a while only; answers what to enrich."""
    await parts.idempotency.sweep()
    await parts.dreams.forget_decisions(parts.settings.decision_seconds)
    await parts.traces.sweep(parts.settings.trace_seconds)
    await parts.audit.sweep(parts.settings.audit_seconds)
    left.renewed(parts.model.embedder is not None, monotonic())
    return await _missed(parts, left)


async def _missed(parts: Parts, left: Left) -> list[Missed]:
    """The oldest that are due and were not left, at most `ROUND` of them."""
    limit = ROUND + len(left.ids)
    if limit > MAX_LEFT:
        return []
    found = await parts.enrichment.overdue(parts.settings.sweep_age, limit)
    return [missed for missed in found if missed[2] not in left.ids][:ROUND]


async def _ask(parts: Parts, one: Wanted) -> None:
    _, ticket = await parts.dreams.request(
        one.tenant, one.tenant_name, one.scope, one.reason, {}, one.silent_seconds
    )
    await publish_now(parts.bus, parts.outbox, one.tenant, [ticket])


async def _enrich_all(parts: Parts, missed: Sequence[Missed], left: Left) -> None:
    done = await asyncio.gather(*(_enriched(parts, (of, name), one) for of, name, one in missed))
    left.ids.update(one for (_, _, one), whole in zip(missed, done, strict=True) if not whole)


async def _enriched(parts: Parts, tenant: tuple[int, str], memory: UUID) -> bool:
    """Whether nothing of the memory is missing any more."""
    try:
        return await derive(parts, tenant, memory)
    # Whatever is wrong with one must not keep the rounds from the others.
    except Exception as error:
        log.warning("enrich_failed", memory=str(memory), error=type(error).__name__)
        return False

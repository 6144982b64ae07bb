"""The clock: finds what a lost event or a silent session left behind. One leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.domain.errors import ReverieError
from reverie.ingest.enrich import enrich
from reverie.ingest.parts import Parts
from reverie.ingest.ranks import rank_all
from reverie.ingest.reconcile import reconcile

log = structlog.get_logger("reverie.ingest")

ROUND = 50
MAX_LEFT = 10_000
AGAIN_SECONDS = 3600.0

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


async def keep_time(parts: Parts) -> None:
    """Does the rounds for ever, the next at once while there is more to do. Cancel it to stop."""
    left = Left()
    more = False
    while True:
        await asyncio.sleep(0 if more else parts.settings.sweep_seconds)
        more = await _round(parts, left)


async def _round(parts: Parts, left: Left) -> bool:
    """One round; whether it found as much as a round takes, and so did not see all."""
    try:
        async with parts.clock.turn() as leader:
            missed = await do_rounds(parts, left) if leader else []
            unranked = await parts.ranks.due(ROUND) if leader else []
        # Outside the turn, whose transaction must not be open while a model works.
        await _enrich_all(parts, missed, left)
        await rank_all(parts, unranked)
    except ReverieError as error:
        log.warning("rounds_put_off", reason=str(error))
        return False
    return len(missed) == ROUND


async def do_rounds(parts: Parts, left: Left) -> list[Missed]:
    """Asks for dreams over silent scopes, renews lost tickets; answers what to enrich."""
    silent = parts.settings.dream_limits.idle_minutes * 60
    for tenant, name, scope in await parts.dreams.idle(silent):
        await _ask(parts, tenant, name, scope, "idle")
    for tenant, name, scope in await parts.dreams.overdue(parts.settings.sweep_age):
        await _ask(parts, tenant, name, scope, "overdue")
    await parts.idempotency.sweep()
    await parts.traces.sweep(parts.settings.trace_seconds)
    left.renewed(parts.model.embedder is not None, monotonic())
    return await _missed(parts, left)


async def _missed(parts: Parts, left: Left) -> list[Missed]:
    """The oldest that are due and were not left, at most `ROUND` of them."""
    limit = ROUND + len(left.ids)
    if limit > MAX_LEFT:
        return []
    found = await parts.enrichment.overdue(parts.settings.sweep_age, limit)
    return [missed for missed in found if missed[2] not in left.ids][:ROUND]


async def _ask(parts: Parts, tenant: int, name: str, scope: str, reason: str) -> None:
    _, ticket = await parts.dreams.request(tenant, name, scope, reason, {})
    await publish_now(parts.bus, parts.outbox, tenant, [ticket])


async def _enrich_all(parts: Parts, missed: Sequence[Missed], left: Left) -> None:
    for tenant, name, memory in missed:
        if not await _enriched(parts, tenant, name, memory):
            left.ids.add(memory)


async def _enriched(parts: Parts, tenant: int, name: str, memory: UUID) -> bool:
    """Whether nothing of the memory is missing any more."""
    try:
        made = await enrich(parts, tenant, name, memory)
        await reconcile(parts, tenant, name, memory)
        return made
    # Whatever is wrong with one must not keep the rounds from the others.
    except Exception as error:
        log.warning("enrich_failed", memory=str(memory), error=type(error).__name__)
        return False

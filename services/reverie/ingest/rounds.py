"""The clock: finds what a lost event or a silent session left behind. One leader at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import structlog

from reverie.bus.relay import publish_now
from reverie.domain.errors import ReverieError
from reverie.ingest.enrich import enrich
from reverie.ingest.parts import Parts

log = structlog.get_logger("reverie.ingest")

Missed = tuple[int, str, UUID]
"""A tenant's number and name, and a memory that its event did not reach."""


async def keep_time(parts: Parts) -> None:
    """Does the rounds for ever. Cancel it to stop."""
    while True:
        await asyncio.sleep(parts.settings.sweep_seconds)
        try:
            async with parts.clock.turn() as leader:
                missed = await do_rounds(parts) if leader else []
            # Outside the turn, whose transaction must not be open while a model works.
            await _enrich_all(parts, missed)
        except ReverieError as error:
            log.warning("rounds_put_off", reason=str(error))


async def do_rounds(parts: Parts) -> list[Missed]:
    """Asks for dreams over silent scopes, renews lost tickets; answers what to enrich."""
    for tenant, name, scope in await parts.dreams.idle(parts.settings.dream_idle_seconds):
        await _ask(parts, tenant, name, scope, "idle")
    for tenant, name, scope in await parts.dreams.overdue(parts.settings.sweep_age):
        await _ask(parts, tenant, name, scope, "overdue")
    await parts.idempotency.sweep()
    if parts.model.embedder is None:
        return []
    return await parts.enrichment.overdue(parts.settings.sweep_age)


async def _ask(parts: Parts, tenant: int, name: str, scope: str, reason: str) -> None:
    _, ticket = await parts.dreams.request(tenant, name, scope, reason, {})
    await publish_now(parts.bus, parts.outbox, tenant, [ticket])


async def _enrich_all(parts: Parts, missed: Sequence[Missed]) -> None:
    for tenant, name, memory in missed:
        try:
            await enrich(parts, tenant, name, memory)
        # Whatever is wrong with one must not keep the rounds from the others.
        except Exception as error:
            log.warning("enrich_failed", memory=str(memory), error=type(error).__name__)

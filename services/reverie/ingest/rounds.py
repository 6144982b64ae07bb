"""The clock: finds what a lost event or a silent session left behind. One leader at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from reverie.bus.relay import publish_now
from reverie.domain.errors import ReverieError
from reverie.ingest.enrich import enrich
from reverie.ingest.parts import Parts

log = structlog.get_logger("reverie.ingest")


async def keep_time(parts: Parts) -> None:
    """Does the rounds for ever. Cancel it to stop."""
    while True:
        await asyncio.sleep(parts.settings.sweep_seconds)
        try:
            async with parts.clock.turn() as leader:
                if leader:
                    await do_rounds(parts)
        except ReverieError as error:
            log.warning("rounds_put_off", reason=str(error))


async def do_rounds(parts: Parts) -> None:
    """Asks for dreams over silent scopes, renews lost tickets, enriches what was missed."""
    for tenant, name, scope in await parts.dreams.idle(parts.settings.dream_idle_seconds):
        _, ticket = await parts.dreams.request(tenant, name, scope, "idle", {})
        await publish_now(parts.bus, parts.outbox, tenant, [ticket])
    for tenant, name, scope in await parts.dreams.overdue(parts.settings.sweep_age):
        _, ticket = await parts.dreams.request(tenant, name, scope, "overdue", {})
        await publish_now(parts.bus, parts.outbox, tenant, [ticket])
    if parts.model.embedder is not None:
        for tenant, name, memory in await parts.enrichment.overdue(parts.settings.sweep_age):
            with suppress(ReverieError):
                await enrich(parts, tenant, name, memory)
    await parts.idempotency.sweep()

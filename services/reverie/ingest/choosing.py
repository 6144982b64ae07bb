"""A tenant whose memories are Chinese, Japanese or Korean is moved to a model that reads them."""

from __future__ import annotations

import structlog

from reverie.domain.errors import ReverieError
from reverie.domain.letters import are_east_asian
from reverie.inference.catalogue import MULTILINGUAL_MODEL
from reverie.ingest.parts import Parts
from reverie.ingest.reembed import fill, reembed
from reverie.runtime.telemetry import span

log = structlog.get_logger("reverie.ingest")

SAMPLE, SAMPLE_CHARS = 200, 400
"""Memories that are looked at, those that came last, and how much of each."""


async def keep_choosing(parts: Parts) -> None:
    """Looks at one tenant after another, for ever. Cancel it to stop.

    One that could not be moved is looked at again, whether or not more of it comes.
    """
    while True:
        tenant = await parts.letters.due()
        again = True
        try:
            await choose(parts, tenant)
            again = tenant in parts.letters.unread
        except ReverieError as error:
            why = {"model": MULTILINGUAL_MODEL, "reason": str(error)}
            log.warning("model_not_chosen", tenant=tenant, **why)
        except Exception as error:
            log.exception("choosing_failed", tenant=tenant, error=type(error).__name__)
        if again:
            parts.letters.later(tenant)


async def choose(parts: Parts, tenant: int) -> bool:
    """Moves the tenant where that is wanted; whether it did. Safe to break off and to repeat.

    One that was moved before, to whatever model, stays with that. Where a model that reads its
    memories may not be chosen, or cannot be had, that is told (`Letters.unread`).
    """
    models, unread = parts.enrichment.models, parts.letters.unread
    if await models.was_moved(tenant):
        unread.discard(tenant)
        await _finish(parts, tenant)
        return False
    if not are_east_asian(await models.begun(tenant, SAMPLE, SAMPLE_CHARS)):
        unread.discard(tenant)
        return False
    unread.add(tenant)
    if not parts.settings.model_by_letters:
        return False
    with span("choose a model"):
        await parts.model.tried()
        embedder = await parts.model.opened(MULTILINGUAL_MODEL)
        made = await reembed(models, models, embedder, tenant, _untold)
    unread.discard(tenant)
    parts.letters.whole.add(tenant)
    log.info("model_chosen", tenant=tenant, model=embedder.name, vectors=made)
    return True


async def _finish(parts: Parts, tenant: int) -> None:
    """Fills what has no vector yet, where moving was broken off after the switch.

    A process looks for that once: from the switch on nothing is written without one.
    """
    models, whole = parts.enrichment.models, parts.letters.whole
    to = await models.of(tenant)
    if to.name == MULTILINGUAL_MODEL and tenant not in whole:
        await fill(models, await parts.model.opened(to.name), tenant, to, _untold)
        whole.add(tenant)


def _untold(done: int, chunks: int) -> None:
    """`GET /v1/models` tells how far it is."""

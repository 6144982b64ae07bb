"""Tending the graph: what faded is archived, what proved itself becomes a convention."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from reverie.domain.clean import without_secrets
from reverie.domain.confidence import FLOOR, has_faded
from reverie.domain.errors import ReverieError
from reverie.domain.kinds import ANCHORS, TREATMENT
from reverie.domain.known_secrets import knowing
from reverie.domain.promotion import convention
from reverie.dream.parts import Parts
from reverie.runtime.telemetry import span
from reverie.store.tending import FIRST, Garden

log = structlog.get_logger("reverie.dream")

FADING = [kind.value for kind, how in TREATMENT.items() if how.decays and kind not in ANCHORS]
PAGE = 500
USE_DAYS = 30
PAUSE = 30.0


@dataclass(frozen=True)
class Tended:
    """How many memories were looked at, archived, and promoted."""

    looked: int
    archived: int
    promoted: int


async def keep_tending(parts: Parts) -> None:
    """Tends one due tenant after another for ever; each is given to one worker at a time."""
    every = parts.settings.tend_seconds
    while True:
        try:
            garden = await parts.tending.due(every)
            if garden:
                await tend(parts, garden)
                continue
        # Whatever is wrong with one tenant, the others are tended.
        except ReverieError as error:
            log.warning("tending_put_off", reason=str(error))
        except Exception as error:
            log.exception("tending_failed", error=type(error).__name__)
        await asyncio.sleep(min(PAUSE, every))


async def tend(parts: Parts, garden: Garden) -> Tended:
    """Tends the scopes of a garden. Safe to run beside another."""
    with span("tend", tenant=garden.tenant_name):
        promoted = await _promote(parts, garden)
        looked, archived = await _archive(parts, garden)
        await parts.tending.forget_uses(garden.tenant, USE_DAYS)
    log.info("tended", looked=looked, archived=archived, promoted=promoted)
    return Tended(looked, archived, promoted)


async def _archive(parts: Parts, garden: Garden) -> tuple[int, int]:
    """How many were looked at and archived, page by page in the order of ids."""
    settings = parts.settings
    above, looked, archived = FIRST, 0, 0
    why = f"its confidence fell to {FLOOR}"
    while True:
        seen = datetime.now(UTC)
        page = await parts.tending.fading(garden, above, FADING, settings.archive_after_days, PAGE)
        faded = [one for one in page if has_faded(one, seen, settings.half_lives)]
        if faded:
            archived += len(await parts.tending.archive(garden, faded, seen, why))
        looked += len(page)
        if len(page) < PAGE:
            return looked, archived
        above = page[-1].id
        log.info("tending", looked=looked, archived=archived)


async def _promote(parts: Parts, garden: Garden) -> int:
    """How many conventions were made, page by page: what is in the way of some stops no others."""
    above, made = FIRST, 0
    while True:
        found = await parts.tending.promotable(garden, above, parts.settings.promote_sessions, PAGE)
        with knowing(await parts.known_of(garden.tenant), lambda _: False):
            new = [without_secrets(convention(memory, evidence)) for memory, evidence in found]
        made += sum([await parts.tending.promote(garden, one) for one in new])
        if len(found) < PAGE:
            return made
        above = found[-1][0].id

"""Tending the graph: pass after pass, each for a while, the next time from where it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

import structlog

from reverie.domain.errors import ReverieError
from reverie.domain.ids import new_id
from reverie.dream.parts import Parts
from reverie.dream.passes import PASSES, REFLECTING, REVIEWING, Step
from reverie.dream.work import Work
from reverie.runtime.telemetry import span
from reverie.store.tending import FIRST, Garden

log = structlog.get_logger("reverie.dream")

PAUSE = 30.0


async def keep_tending(parts: Parts) -> None:
    """Tends one due tenant after another for ever; each is given to one worker at a time.

    What was not finished goes on after a pause, when no other tenant is due.
    """
    every = parts.settings.tend_seconds
    waiting: deque[Garden] = deque()
    while True:
        try:
            garden = await parts.tending.due(every)
            if garden is None and waiting:
                await asyncio.sleep(min(PAUSE, every))
                garden = waiting.popleft()
            if garden:
                if (await tend(parts, garden)).unfinished:
                    waiting.append(garden)
                continue
        # Whatever is wrong with one tenant, the others are tended.
        except ReverieError as error:
            log.warning("tending_put_off", reason=str(error))
        except Exception as error:
            log.exception("tending_failed", error=type(error).__name__)
        await asyncio.sleep(min(PAUSE, every))


async def tend(parts: Parts, garden: Garden, only: Collection[str] = ()) -> Work:
    """Tends the scopes of a garden and keeps a record of it. Safe to run beside another.

    `only`: these passes alone; without any, all.

    A whole tenant is tended from where its last worker ended, a part of it from the beginning.
    """
    work, started = Work(garden), datetime.now(UTC)
    with span("tend", tenant=garden.tenant_name):
        try:
            await _all(parts, work, only)
        except Exception as error:
            await _keep(parts, work, started, type(error).__name__)
            raise
    await _keep(parts, work, started, None)
    return work


async def _all(parts: Parts, work: Work, only: Collection[str]) -> None:
    places = await parts.tending.places(work.garden)
    steps = PASSES | (REFLECTING if parts.settings.reflect else {})
    steps |= REVIEWING if parts.settings.review != "off" else {}
    for name, step in steps.items():
        if only and name not in only:
            continue
        begun = monotonic()
        if not await _pass(parts, work, name, step, places.get(name, FIRST)):
            work.unfinished.append(name)
        work.record.spent(name, monotonic() - begun)


async def _pass(parts: Parts, work: Work, name: str, step: Step, above: UUID) -> bool:
    """One pass, page by page until its time is over; whether it came to the end."""
    until = monotonic() + parts.settings.tend_pass_seconds
    while True:
        page = await step(parts, work, above)
        work.counts["looked"] = work.counts.get("looked", 0) + page.looked
        above = page.last or FIRST
        await parts.tending.went_on(work.garden, name, above, page.looked)
        if page.last is None:
            return True
        if monotonic() >= until:
            return False


async def _keep(parts: Parts, work: Work, started: datetime, error: str | None) -> None:
    """The record of what was done, where there was anything to look at."""
    log.info("tended", **work.counts, unfinished=work.unfinished)
    if work.counts.get("looked") or error:
        await parts.tending.record(
            work.garden, new_id(), parts.settings.worker, started, error, work.record, work.counts
        )

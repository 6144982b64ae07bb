"""Tending the graph: pass after pass, each for a while, the next time from where it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from time import monotonic
from typing import Literal, NoReturn
from uuid import UUID

import structlog

from reverie.domain.errors import ReverieError, Unavailable
from reverie.dream.keeping import beside, held
from reverie.dream.parts import Parts
from reverie.dream.passes import PASSES, REFLECTING, REVIEWING, Step
from reverie.dream.sessions import LeaseLost
from reverie.dream.work import Work
from reverie.runtime.telemetry import span
from reverie.store.tending import FIRST, Garden, TendRun, Turn

log = structlog.get_logger("reverie.dream")

PAUSE = 10.0
"""Seconds between two looks for a tenant that is due, and before what was not finished goes on."""


class WorkersLost(Exception):
    """Every try to tend this tenant failed, or its worker died over it: the next would too."""


async def keep_tending(parts: Parts) -> None:
    """Tends one due tenant after another for ever. Cancel it to stop."""
    pause = min(PAUSE, parts.settings.tend_seconds)
    while True:
        try:
            if await tend_next(parts, pause):
                continue
        # Whatever is wrong with one tenant, the others are tended.
        except ReverieError as error:
            log.warning("tending_put_off", reason=str(error))
        except LeaseLost:
            log.warning("tending_lost")
        except Exception as error:
            log.exception("tending_failed", error=type(error).__name__)
        await asyncio.sleep(pause)


async def tend_next(parts: Parts, pause: float) -> bool:
    """Tends a tenant that is due; False where none is. Each is given to one worker at a time.

    What was not finished goes on after a pause, what failed or was left by a worker that died when
    its lease has run out, here or elsewhere.
    """
    settings = parts.settings
    turn = await parts.tending.due(settings.tend_seconds, settings.lease_seconds)
    if turn is None:
        return False
    try:
        work = await beside(_keep_turn(parts, turn), _taken(parts, turn))
    except asyncio.CancelledError:
        await asyncio.shield(_leave(parts, turn, 0.0))
        raise
    except Unavailable:
        # What is away is no fault of the tenant, and comes back.
        await _leave(parts, turn, pause)
        raise
    await parts.tending.end(turn, pause if work.unfinished else None)
    return True


async def _taken(parts: Parts, turn: Turn) -> Work:
    """Tends the tenant, unless too many workers died over it: then that is noted."""
    if turn.tries <= parts.settings.max_attempts:
        return await tend(parts, turn.garden, epoch=turn.epoch)
    run = TendRun(turn.garden, parts.settings.worker, turn.epoch)
    await _end(parts, Work(turn.garden), run, WorkersLost.__name__)
    return Work(turn.garden)


async def _keep_turn(parts: Parts, turn: Turn) -> NoReturn:
    """Renews the lease every third of its time, until that fails."""
    seconds = parts.settings.lease_seconds
    while True:
        await asyncio.sleep(seconds / 3)
        held(await parts.tending.keep(turn, seconds))


async def _leave(parts: Parts, turn: Turn, pause: float) -> None:
    """Leaves a tenant to the next after a pause: a worker that is told to stop does so at once."""
    try:
        await parts.tending.end(turn, pause)
    except ReverieError as error:
        log.warning("lease_left_to_run_out", reason=str(error))


async def tend(parts: Parts, garden: Garden, only: Collection[str] = (), epoch: int = 0) -> Work:
    """Tends the scopes of a garden and keeps a record of it. Safe to run beside another.

    `only`: these passes alone; without any, all. `epoch`: of the lease that it is done under.

    A whole tenant is tended from where its last worker ended, a part of it from the beginning.
    """
    work, run = Work(garden), TendRun(garden, parts.settings.worker, epoch)
    with span("tend", tenant=garden.tenant_name):
        try:
            await _all(parts, work, run, only)
        except Exception as error:
            await _end(parts, work, run, type(error).__name__)
            raise
    await _end(parts, work, run, None)
    return work


async def _all(parts: Parts, work: Work, run: TendRun, only: Collection[str]) -> None:
    places = await parts.tending.places(work.garden)
    steps = PASSES | (REFLECTING if parts.settings.reflect else {})
    steps |= REVIEWING if parts.settings.review != "off" else {}
    for name, step in steps.items():
        if only and name not in only:
            continue
        begun = monotonic()
        if not await _pass(parts, work, run, (name, step), places.get(name, FIRST)):
            work.unfinished.append(name)
        work.record.spent(name, monotonic() - begun)


async def _pass(
    parts: Parts, work: Work, run: TendRun, step: tuple[str, Step], above: UUID
) -> bool:
    """One pass, page by page until its time is over; whether it came to the end."""
    name, do = step
    until = monotonic() + parts.settings.tend_pass_seconds
    while True:
        page = await do(parts, work, above)
        work.counts["looked"] = work.counts.get("looked", 0) + page.looked
        above = page.last or FIRST
        if run.epoch and work.record.decisions:
            await parts.tending.record(run, "running", None, work.record.flush(), work.counts)
        await parts.tending.went_on(work.garden, name, above, page.looked)
        if page.last is None:
            return True
        if monotonic() >= until:
            return False


async def _end(parts: Parts, work: Work, run: TendRun, error: str | None) -> None:
    """Ends the record of what was done, where there was anything to look at."""
    log.info("tended", **work.counts, unfinished=work.unfinished)
    if work.counts.get("looked") or error:
        status: Literal["done", "failed"] = "failed" if error else "done"
        await parts.tending.record(run, status, error, work.record, work.counts)

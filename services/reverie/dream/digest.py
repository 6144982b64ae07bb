"""One dream over one scope: turns in, memories and a summary out, under a lease."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn
from uuid import UUID

import structlog

from reverie.bus.dead import Origin, letter
from reverie.bus.relay import publish_now
from reverie.bus.streams import DREAM_WORKERS
from reverie.contracts.events import DREAM, dream_subject, outgoing
from reverie.domain.ids import new_id
from reverie.domain.redaction import redact
from reverie.domain.summary import summarise
from reverie.dream.parts import Parts
from reverie.dream.sessions import LeaseLost, digest_session, knowing_of
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.dreams import FIRST, Lease

log = structlog.get_logger("reverie.dream")


PARKED = "Reverie-Parked"
"""A header of a dead letter: the run after which the job was parked. Sent again, it wakes."""


class WorkersLost(Exception):
    """Every worker that took this scope died over it: the next would too."""


async def dream(parts: Parts, lease: Lease) -> str:
    """Digests all that waits in the scope. Answers done, again, lost, retry or parked."""
    run = new_id()
    with span("dream", scope=lease.scope, attempt=lease.attempts):
        try:
            return await _while_kept(parts, lease, _run(parts, lease, run))
        except LeaseLost:
            log.warning("lease_lost", run=str(run))
            return "lost"
        except Exception as error:
            log.exception("dream_failed", run=str(run), attempt=lease.attempts)
            return await _fail(parts, lease, run, type(error).__name__)


async def _fail(parts: Parts, lease: Lease, run: UUID, reason: str) -> str:
    """Gives the job back, or parks it and leaves a dead letter."""
    settings = parts.settings
    origin = Origin(DREAM, DREAM_WORKERS.name, str(run))
    parked = outgoing(
        lease.tenant,
        dream_subject(lease.tenant_name, lease.scope),
        {"scope": lease.scope},
        {PARKED: str(run)},
    )
    state, events = await parts.dreams.fail(
        lease,
        run,
        reason,
        settings.max_attempts,
        settings.pause_seconds,
        letter(lease.tenant, origin, parked, lease.attempts, reason),
    )
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)
    return state


async def _run(parts: Parts, lease: Lease, run: UUID) -> str:
    _held(await parts.dreams.start(lease, run, parts.settings.worker))
    if lease.attempts > parts.settings.max_attempts:
        raise WorkersLost
    above = FIRST
    while sessions := await parts.dreams.sessions(lease, above, parts.settings.limits):
        for session in sessions:
            await digest_session(parts, lease, run, session)
        above = sessions[-1].id
    known = await parts.dreams.known(lease, parts.settings.summary_memories)
    if known:
        with await knowing_of(parts, lease):
            told = summarise(known, parts.counter.count, parts.settings.summary_tokens)
            text = redact(told).text
        _held(await parts.dreams.summarise(lease, text, parts.counter.count(text)))
    state, events = await parts.dreams.finish(lease, run, inject_headers(), parts.settings.limits)
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)
    log.info("dreamt", run=str(run), state=state)
    return state


def _held(held: bool) -> None:
    if not held:
        raise LeaseLost


async def _while_kept(parts: Parts, lease: Lease, work: Coroutine[Any, Any, str]) -> str:
    """The outcome of the work, beside which the lease is renewed; `LeaseLost` ends it early."""
    working = asyncio.create_task(work)
    keeping = asyncio.create_task(_keep(parts, lease))
    try:
        done, _ = await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
        return await (working if working in done else keeping)
    finally:
        for task in (working, keeping):
            task.cancel()
        await asyncio.gather(working, keeping, return_exceptions=True)


async def _keep(parts: Parts, lease: Lease) -> NoReturn:
    """Renews the lease every third of its time, until that fails."""
    seconds = parts.settings.lease_seconds
    while True:
        await asyncio.sleep(seconds / 3)
        _held(await parts.dreams.renew(lease, seconds))

"""One dream over one scope: turns in, memories and a summary out, under a lease."""

from __future__ import annotations

from time import perf_counter
from uuid import UUID

import structlog

from reverie.bus.dead import Origin, letter
from reverie.bus.relay import publish_now
from reverie.bus.streams import DREAM_WORKERS
from reverie.contracts.events import DREAM, dream_subject, outgoing
from reverie.domain.dreaming import Record
from reverie.domain.errors import Unavailable
from reverie.domain.ids import new_id
from reverie.dream.keeping import held, while_kept
from reverie.dream.parts import Parts
from reverie.dream.promoting import promote_merged
from reverie.dream.sessions import LeaseLost, digest_session
from reverie.dream.stages import stage
from reverie.dream.summing import summarise_scope
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.dreams import FIRST, DreamSession, Lease

log = structlog.get_logger("reverie.dream")


PARKED = "Reverie-Parked"
"""A header of a dead letter: the run after which the job was parked. Sent again, it wakes."""


class WorkersLost(Exception):
    """Every worker that took this scope died over it: the next would too."""


class Poison(Exception):
    """A session that could not be digested; the text says which, and what went wrong by class."""


async def dream(parts: Parts, lease: Lease) -> str:
    """Digests all that waits in the scope. Answers done, again, lost, retry or parked."""
    run, begun, settings = new_id(), perf_counter(), parts.settings
    with span("dream", scope=lease.scope, attempt=lease.attempts):
        try:
            state = await while_kept(parts, lease, run, _run(parts, lease, run))
        except LeaseLost:
            log.warning("lease_lost", run=str(run))
            state = "lost"
        except Poison as error:
            state = await _fail(parts, lease, run, str(error), settings.max_attempts)
        except Unavailable as error:
            # What is away is no fault of the scope, and comes back.
            log.warning("dream_put_off", run=str(run), reason=str(error))
            state = await _fail(parts, lease, run, type(error).__name__, None)
        except Exception as error:
            log.exception("dream_failed", run=str(run), attempt=lease.attempts)
            state = await _fail(parts, lease, run, type(error).__name__, settings.max_attempts)
    parts.meters.ended(state, perf_counter() - begun)
    return state


async def _fail(parts: Parts, lease: Lease, run: UUID, reason: str, most: int | None) -> str:
    """Gives the job back, or after `most` attempts parks it and leaves a dead letter."""
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
        most,
        parts.settings.pause_seconds,
        letter(lease.tenant, origin, parked, lease.attempts, reason),
    )
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)
    return state


async def _run(parts: Parts, lease: Lease, run: UUID) -> str:
    held(await parts.dreams.start(lease, run, parts.settings.worker))
    if lease.attempts > parts.settings.max_attempts:
        raise WorkersLost
    record, failed = Record(), None
    above = FIRST
    while sessions := await parts.dreams.sessions(lease, above, parts.settings.limits):
        for session in sessions:
            failed = await _digest(parts, lease, run, session, record) or failed
        above = sessions[-1].id
    with stage(record, "promote"):
        await promote_merged(parts, lease, run, record)
    with stage(record, "summarise"):
        await summarise_scope(parts, lease, run)
    held(await parts.dreams.record(lease, run, record))
    if failed:
        raise failed
    state, events = await parts.dreams.finish(lease, run, inject_headers(), parts.settings.limits)
    await publish_now(parts.bus, parts.outbox, lease.tenant, events)
    log.info("dreamt", run=str(run), state=state)
    return state


async def _digest(
    parts: Parts, lease: Lease, run: UUID, session: DreamSession, record: Record
) -> Poison | None:
    """Digests a session. What is wrong with it is answered: the others go on."""
    try:
        await digest_session(parts, lease, run, session, record)
    except (LeaseLost, Unavailable):
        raise
    except Exception as error:
        log.exception("session_failed", session=str(session.id), attempt=lease.attempts)
        return Poison(f"{type(error).__name__} in session {session.id}")
    return None

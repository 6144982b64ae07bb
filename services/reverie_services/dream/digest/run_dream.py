"""Runs one dream over a scope: sessions, merged branches, and the scope's summary."""

from __future__ import annotations

from time import perf_counter
from uuid import UUID

import structlog

from reverie.bus.dead_letters import DeadLetterOrigin, build_dead_letter_event
from reverie.bus.streams import DREAM_WORKERS
from reverie.contracts.events import DREAM_STREAM, build_outgoing_event, dream_subject
from reverie.domain.context.scope_summary import ComposedSummary, needs_rebuild, summarize_memories
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory
from reverie.domain.extraction.dream_log import DigestDecision, DreamRunLog
from reverie.runtime.observability.tracing import span, trace_headers
from reverie.store.memories.duplicates import deduplicate
from reverie.store.sessions.dream_queue import START_ID, DreamLease, DreamSession
from reverie.store.sessions.summaries import SummaryBasis
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.leases import (
    LeaseLost,
    ensure_lease_held,
    renew_lease,
    run_with_heartbeat,
)
from reverie_services.dream.digest.scope_narrative import update_narrative
from reverie_services.dream.digest.session_digest import (
    digest_session,
    timed_stage,
)

log = structlog.get_logger("reverie.dream")

PROMOTION_BATCH = 100
MAX_SUMMARY_MEMORIES = 400
PARKED_HEADER = "Reverie-Parked"
"""A header of a dead letter: the run after which its job was parked. Replaying wakes the job."""


class DigestAttemptsExhausted(Exception):
    """Every worker that took this scope died while digesting it."""


class SessionDigestFailed(Exception):
    """A session that could not be digested; the text names the session and the error class."""


async def run_dream(deps: DigestDependencies, lease: DreamLease) -> str:
    """Digests all that waits in the scope. Returns done, again, lost, retry or parked."""
    run, started, settings = new_id(), perf_counter(), deps.settings
    with span("dream", scope=lease.scope, attempt=lease.attempts):
        try:
            heartbeat = renew_lease(deps, lease, run)
            state = await run_with_heartbeat(heartbeat, _digest_scope(deps, lease, run))
        except LeaseLost:
            log.warning("lease_lost", run=str(run))
            state = "lost"
        except SessionDigestFailed as error:
            state = await _release_failed(deps, lease, run, str(error), settings.max_attempts)
        except Unavailable as error:
            # An unavailable dependency is not a fault of the scope, and recovers.
            log.warning("dream_postponed", run=str(run), reason=str(error))
            state = await _release_failed(deps, lease, run, type(error).__name__, None)
        except Exception as error:
            log.exception("dream_failed", run=str(run), attempt=lease.attempts)
            state = await _release_failed(
                deps, lease, run, type(error).__name__, settings.max_attempts
            )
    deps.metrics.observe_dream(state, perf_counter() - started)
    return state


async def _release_failed(
    deps: DigestDependencies, lease: DreamLease, run: UUID, reason: str, max_attempts: int | None
) -> str:
    """Gives the job back, or after `max_attempts` attempts parks it and leaves a dead letter."""
    origin = DeadLetterOrigin(DREAM_STREAM, DREAM_WORKERS.name, str(run))
    parked_event = build_outgoing_event(
        lease.tenant,
        dream_subject(lease.tenant_name, lease.scope),
        {"scope": lease.scope},
        {PARKED_HEADER: str(run)},
    )
    state, events = await deps.dreams.fail(
        lease,
        run,
        reason,
        max_attempts,
        deps.settings.retry_pause,
        build_dead_letter_event(lease.tenant, origin, parked_event, lease.attempts, reason),
    )
    await deps.publisher.publish(lease.tenant, events)
    return state


async def _digest_scope(deps: DigestDependencies, lease: DreamLease, run: UUID) -> str:
    ensure_lease_held(await deps.dreams.start(lease, run, deps.settings.worker))
    if lease.attempts > deps.settings.max_attempts:
        raise DigestAttemptsExhausted
    record, failure = DreamRunLog(), None
    after_id = START_ID
    while sessions := await deps.dreams.claim_sessions(lease, after_id, deps.settings.limits):
        for session in sessions:
            failure = await _try_digest_session(deps, lease, run, session, record) or failure
        after_id = sessions[-1].id
    with timed_stage(record, "promote"):
        await promote_merged_branches(deps, lease, run, record)
    with timed_stage(record, "summarise"):
        await update_scope_summary(deps, lease, run)
        await update_narrative(deps, lease, record)
    ensure_lease_held(await deps.dreams.write_record(lease, run, record))
    if failure:
        raise failure
    state, events = await deps.dreams.finish(lease, run, trace_headers(), deps.settings.limits)
    await deps.publisher.publish(lease.tenant, events)
    log.info("dream_finished", run=str(run), state=state)
    return state


async def _try_digest_session(
    deps: DigestDependencies,
    lease: DreamLease,
    run: UUID,
    session: DreamSession,
    record: DreamRunLog,
) -> SessionDigestFailed | None:
    """Digests a session; returns its failure, so that the other sessions are still digested."""
    try:
        await digest_session(deps, lease, run, session, record)
    except (LeaseLost, Unavailable):
        raise
    except Exception as error:
        log.exception("session_failed", session=str(session.id), attempt=lease.attempts)
        return SessionDigestFailed(f"{type(error).__name__} in session {session.id}")
    return None


async def promote_merged_branches(
    deps: DigestDependencies, lease: DreamLease, run: UUID, record: DreamRunLog
) -> None:
    """Promotes the memories of merged branches to the project, in batches, and compares them with
    the project's own: duplicates are merged, contradictions linked. Safe to repeat."""
    while True:
        promotions = await deps.dreams.promote(lease, run, PROMOTION_BATCH, trace_headers())
        if promotions is None:
            raise LeaseLost
        for promotion in promotions:
            if promotion.outcome != "promoted":
                continue
            tenant = (lease.tenant, lease.tenant_name)
            for outcome in await deduplicate(
                deps.duplicates, tenant, promotion.memory, trace_headers()
            ):
                record.record_decision(
                    DigestDecision(outcome.kind, outcome.reason, None, outcome.outcome.id)
                )
                await deps.publisher.publish(lease.tenant, [outcome.outcome.event])
        if len(promotions) < PROMOTION_BATCH:
            return


async def update_scope_summary(deps: DigestDependencies, lease: DreamLease, run: UUID) -> None:
    """Brings the summary up to date. A repetition changes nothing."""
    basis = await deps.summaries.load_basis(lease)
    redactor = (await deps.load_redactor(lease.tenant)).within(lease.scope)
    summary = await _build_summary(deps, lease, run, basis)
    text = redactor.redact(summary.text).text
    if text or basis.sources:
        tokens = deps.token_counter.count(text)
        ensure_lease_held(await deps.summaries.put(lease, run, text, tokens, summary, basis.now))


async def _build_summary(
    deps: DigestDependencies, lease: DreamLease, run: UUID, basis: SummaryBasis
) -> ComposedSummary[Memory]:
    """Builds the summary from the changes, if that gives the same as from all memories.

    It does not if the changes are unknown, or make room for memories that were cut off.
    """
    limit, token_limit = MAX_SUMMARY_MEMORIES, deps.settings.max_summary_tokens
    count = deps.token_counter.count
    if basis.seen:
        memories = await deps.summaries.list_changed(lease, run, basis, basis.seen, limit)
        summary = summarize_memories(memories, count, token_limit)
        # The memory of a session gets new versions as the session goes on, without new weight.
        has_reweighed = any(
            memory.kind is not Kind.SESSION
            and basis.sources.get(memory.id, memory.version) != memory.version
            for memory in memories
        )
        is_truncated = len(memories) >= limit
        if not is_truncated and not needs_rebuild(
            basis.complete, has_reweighed, count(summary.text), token_limit
        ):
            return ComposedSummary(
                summary.text, summary.sources, summary.is_complete and basis.complete
            )
    memories = await deps.summaries.list_memories(lease, limit)
    summary = summarize_memories(memories, count, token_limit)
    return ComposedSummary(
        summary.text, summary.sources, summary.is_complete and len(memories) < limit
    )

"""Periodic jobs of one leader: due dreams, retention sweeps, missed memories, and ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import structlog

from reverie.bus.outbox_relay import publish_now
from reverie.contracts.events import MAINTENANCE_SUBJECT, build_outgoing_event
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.domain.graph.pagerank import rank_nodes
from reverie.store.sessions.dreams import DueScope
from reverie_services.ingest.dependencies import IngestDependencies
from reverie_services.ingest.enrich.worker import enrich_memory

log = structlog.get_logger("reverie.ingest")


async def update_ranks(deps: IngestDependencies, tenants: Sequence[int]) -> None:
    """Computes the ranks of tenants anew; safe to repeat."""
    for tenant in tenants:
        graph = await deps.ranks.load_edges(tenant)
        ranks = await asyncio.to_thread(rank_nodes, graph.edges)
        await deps.ranks.put(tenant, ranks, graph.changes)
        log.info("ranked", tenant=tenant, memories=len(ranks.nodes))


ROUND_SIZE = 50
MAX_DUE_DREAMS = 100
MAX_POSTPONED = 10_000
RETRY_SECONDS = 3600.0
WAKEUP_INTERVAL = 60.0

MissedMemory = tuple[int, str, UUID]
"""A tenant's number and name, and a memory that its event did not reach."""


@dataclass
class PostponedMemories:
    """Memories that a round of this process could not finish, so that others get their turn.

    Without a model a memory has its anchors and stays due; some fail each time. They are tried
    again after `RETRY_SECONDS`, and when the model comes.
    """

    ids: set[UUID] = field(default_factory=set)
    had_model: bool = False
    retry_at: float = 0.0

    def clear_if_due(self, has_model: bool, now: float) -> None:
        """Forgets all where the model came or went, or their time is over; `now` in seconds."""
        if has_model != self.had_model or now >= self.retry_at:
            self.ids.clear()
            self.had_model, self.retry_at = has_model, now + RETRY_SECONDS


@dataclass
class WorkerWakeup:
    """Wakes a worker while some tenant is due to be tended and nobody is at it, for memories are
    tended also where nobody talks and no worker runs. One too many does nothing."""

    next_at: float = 0.0

    async def wake_if_due(self, deps: IngestDependencies, now: float) -> None:
        """Rings where it is wanted, every `WAKEUP_INTERVAL` at most; `now` in seconds."""
        if now >= self.next_at and await deps.maintenance.is_any_due(
            deps.settings.maintenance_interval
        ):
            await deps.bus.publish(build_outgoing_event(0, MAINTENANCE_SUBJECT, {}, {}))
            self.next_at = now + WAKEUP_INTERVAL


async def run_scheduler(deps: IngestDependencies) -> None:
    """Does the rounds for ever, the next at once while there is more to do. Cancel it to stop."""
    postponed, wakeup = PostponedMemories(), WorkerWakeup()
    more = False
    while True:
        await asyncio.sleep(0 if more else deps.settings.scheduler_interval)
        more = await _run_round(deps, postponed, wakeup)


async def _run_round(
    deps: IngestDependencies, postponed: PostponedMemories, wakeup: WorkerWakeup
) -> bool:
    """One round; whether it found as much as a round takes, and so did not see all."""
    try:
        async with deps.leader_lock.acquire() as leader:
            request_count = await request_due_dreams(deps) if leader else 0
            if leader:
                await _wake_workers(deps, wakeup)
            missed = await sweep_and_find_missed(deps, postponed) if leader else []
            unranked = await deps.ranks.list_due_tenants(ROUND_SIZE) if leader else []
        # Outside the turn, whose transaction must not be open while a model works.
        await _enrich_missed(deps, missed, postponed)
        await update_ranks(deps, unranked)
    except ReverieError as error:
        log.warning("rounds_put_off", reason=str(error))
        return False
    return len(missed) == ROUND_SIZE or request_count == MAX_DUE_DREAMS


async def _wake_workers(deps: IngestDependencies, wakeup: WorkerWakeup) -> None:
    with suppress(Unavailable):
        await wakeup.wake_if_due(deps, monotonic())


async def request_due_dreams(deps: IngestDependencies) -> int:
    """Asks for dreams over scopes that are due and renews lost tickets; how many were due."""
    due_scopes = await deps.dreams.list_due_scopes(deps.settings.dream_limits, MAX_DUE_DREAMS)
    for due_scope in due_scopes:
        await _request_dream(deps, due_scope)
    for ticket in await deps.dreams.list_overdue(deps.settings.sweep_age):
        with suppress(Unavailable):
            await deps.bus.publish(ticket)
    return len(due_scopes)


async def sweep_and_find_missed(
    deps: IngestDependencies, postponed: PostponedMemories
) -> list[MissedMemory]:
    """Sweeps what is kept for a while only; answers what to enrich."""
    await deps.idempotency.sweep()
    await deps.dream_runs.delete_old_decisions(deps.settings.dream_retention)
    await deps.traces.sweep(deps.settings.trace_retention)
    await deps.audit.sweep(deps.settings.audit_retention)
    postponed.clear_if_due(deps.model_manager.is_ready, monotonic())
    return await _find_missed(deps, postponed)


async def _find_missed(
    deps: IngestDependencies, postponed: PostponedMemories
) -> list[MissedMemory]:
    """The oldest that are due and were not left, at most `ROUND_SIZE` of them."""
    limit = ROUND_SIZE + len(postponed.ids)
    if limit > MAX_POSTPONED:
        return []
    overdue = await deps.enrichment.list_overdue(deps.settings.sweep_age, limit)
    return [missed for missed in overdue if missed[2] not in postponed.ids][:ROUND_SIZE]


async def _request_dream(deps: IngestDependencies, due_scope: DueScope) -> None:
    _, ticket = await deps.dreams.request(
        due_scope.tenant,
        due_scope.tenant_name,
        due_scope.scope,
        due_scope.reason,
        {},
        due_scope.silent_seconds,
    )
    await publish_now(deps.bus, deps.outbox, due_scope.tenant, [ticket])


async def _enrich_missed(
    deps: IngestDependencies, missed: Sequence[MissedMemory], postponed: PostponedMemories
) -> None:
    results = await asyncio.gather(
        *(_try_enrich(deps, (tenant_id, name), memory_id) for tenant_id, name, memory_id in missed)
    )
    postponed.ids.update(
        memory_id
        for (_, _, memory_id), is_complete in zip(missed, results, strict=True)
        if not is_complete
    )


async def _try_enrich(deps: IngestDependencies, tenant: tuple[int, str], memory_id: UUID) -> bool:
    """Whether nothing of the memory is missing any more."""
    try:
        return await enrich_memory(deps, tenant, memory_id)
    # Whatever is wrong with one must not keep the rounds from the others.
    except Exception as error:
        log.warning("enrich_failed", memory=str(memory_id), error=type(error).__name__)
        return False

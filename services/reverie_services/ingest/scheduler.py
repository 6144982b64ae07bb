"""Periodic jobs of one leader: due dreams, retention sweeps, missed memories, and ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import structlog

from reverie.bus.erasure import erase_engine_events
from reverie.bus.streams import INGEST_ENRICH, INGEST_ENRICH_BULK
from reverie.contracts.events import MAINTENANCE_SUBJECT, build_outgoing_event
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS
from reverie.domain.graph.pagerank import rank_scopes
from reverie_services.ingest.dependencies import SchedulerDependencies
from reverie_services.ingest.enrich.worker import enrich_memory

log = structlog.get_logger("reverie.ingest")

ROUND_SIZE = 50
MAX_DUE_DREAMS = 100
MAX_POSTPONED = 10_000
RETRY_SECONDS = 3600.0
WAKEUP_INTERVAL = 60.0
DAY = 86_400.0
DREAM_RETENTION = 90 * DAY

MissedMemory = tuple[int, str, UUID]
"""A tenant's number and name, and a memory that its event did not reach."""


@dataclass
class PostponedMemories:
    """Memories that a round of this process could not finish, so that others get their turn.

    Without a model a memory has its anchors and stays due. They are tried again after
    `RETRY_SECONDS`, and when the model comes. One that fails each time is tried five times.
    """

    ids: set[UUID] = field(default_factory=set)
    had_model: bool = False
    retry_at: float = 0.0

    def clear_if_due(self, has_model: bool, now: float) -> None:
        """Clears the ids at the retry time, or if model availability changed; `now` in seconds."""
        if has_model != self.had_model or now >= self.retry_at:
            self.ids.clear()
            self.had_model, self.retry_at = has_model, now + RETRY_SECONDS


class Scheduler:
    """The rounds of this process; of all processes, one at a time is the leader that does them."""

    def __init__(self, deps: SchedulerDependencies) -> None:
        self._deps = deps
        self.postponed = PostponedMemories()
        self._next_wakeup = 0.0

    async def run(self) -> None:
        """Runs rounds until it is cancelled, without a pause while there is more to do."""
        has_more = False
        while True:
            await asyncio.sleep(0 if has_more else self._deps.settings.scheduler_interval)
            try:
                has_more = await self._run_round()
            except ReverieError as error:
                log.warning("scheduled_task_postponed", reason=str(error))
                has_more = False

    async def _run_round(self) -> bool:
        """One round; whether it found as much as a round takes, and so did not see all."""
        async with self._deps.leader_lock.acquire() as is_leader:
            if not is_leader:
                return False
            request_count = await self._request_due_dreams()
            await self._wake_maintenance_worker()
            await self._sweep_expired()
            forgotten = await self._deps.forgetting.list_due(
                self._deps.settings.forget_days * DAY, ROUND_SIZE
            )
            missed = await self.find_missed()
            unranked = await self._deps.ranks.list_due_tenants(ROUND_SIZE)
        # Outside the turn, whose transaction must not be open during long work.
        await self._erase(forgotten)
        await self.enrich_missed(missed)
        for tenant in unranked:
            graph = await self._deps.ranks.load_edges(tenant)
            ranks = await asyncio.to_thread(rank_scopes, graph.scopes)
            await self._deps.ranks.put(tenant, ranks, graph.changes)
            log.info("ranked", tenant=tenant, memories=len(ranks.nodes))
        return len(missed) == ROUND_SIZE or request_count == MAX_DUE_DREAMS

    async def _request_due_dreams(self) -> int:
        """Asks for dreams over scopes that are due and renews lost tickets; how many were due."""
        deps = self._deps
        due_scopes = await deps.dreams.list_due_scopes(DEFAULT_THRESHOLDS, MAX_DUE_DREAMS)
        for due in due_scopes:
            _, ticket = await deps.dreams.request(
                due.tenant, due.tenant_name, due.scope, due.reason, {}, due.silent_seconds
            )
            await deps.publisher.publish(due.tenant, [ticket])
        for ticket in await deps.dreams.list_overdue(deps.overdue_seconds):
            with suppress(Unavailable):
                await deps.publisher.bus.publish(ticket)
        return len(due_scopes)

    async def _wake_maintenance_worker(self) -> None:
        """Wakes a worker while maintenance of some tenant is due, every `WAKEUP_INTERVAL` at most.

        Nobody may talk to that tenant, so no other event wakes one. One too many does nothing.
        """
        deps = self._deps
        with suppress(Unavailable):
            if monotonic() >= self._next_wakeup and await deps.maintenance.is_any_due(
                deps.settings.maintenance_interval * 60
            ):
                await deps.publisher.bus.publish(
                    build_outgoing_event(0, MAINTENANCE_SUBJECT, {}, {})
                )
                self._next_wakeup = monotonic() + WAKEUP_INTERVAL

    async def _sweep_expired(self) -> None:
        """Deletes what is kept for a while only."""
        deps, settings = self._deps, self._deps.settings
        await deps.idempotency.sweep()
        await deps.dream_runs.delete_old_decisions(DREAM_RETENTION)
        await deps.traces.sweep(settings.trace_retention_hours * 3600)
        await deps.index_changes.sweep()
        await deps.audit.sweep(settings.audit_retention_days * DAY)
        await deps.conversations.sweep(settings.engine_retention_days * DAY)
        await deps.vault.sweep_retired()
        await deps.documents.sweep()

    async def _erase(self, forgotten: Sequence[tuple[int, UUID]]) -> None:
        """Erases memories whose time to be restored is over."""
        for tenant, memory in forgotten:
            try:
                rows = await self._deps.forgetting.erase(tenant, memory)
                if name := await self._deps.conversations.get_tenant_name(tenant):
                    await erase_engine_events(self._deps.publisher.bus, name, rows)
            except Exception:
                # One that cannot be erased must not keep all others.
                log.exception("erasing_failed", tenant=tenant, memory=str(memory))

    async def find_missed(self) -> list[MissedMemory]:
        """Memories that are overdue and not postponed, at most `ROUND_SIZE` of them.

        None while more wait on the bus: a memory is then overdue because it awaits its turn.
        """
        bus, enrichment = self._deps.publisher.bus, self._deps.enrichment
        with suppress(Unavailable):
            waiting = [await bus.lag(spec) for spec in (INGEST_ENRICH, INGEST_ENRICH_BULK)]
            if sum(waiting) > ROUND_SIZE:
                return []
        self.postponed.clear_if_due(enrichment.model_manager.is_ready, monotonic())
        limit = ROUND_SIZE + len(self.postponed.ids)
        if limit > MAX_POSTPONED:
            return []
        overdue = await enrichment.enrichment.list_overdue(self._deps.overdue_seconds, limit)
        return [missed for missed in overdue if missed[2] not in self.postponed.ids][:ROUND_SIZE]

    async def enrich_missed(self, missed: Sequence[MissedMemory]) -> None:
        """Enriches memories, and postpones those of which something is missing still."""
        completed = await asyncio.gather(*(self._try_enrich(memory) for memory in missed))
        self.postponed.ids.update(
            memory_id
            for (_, _, memory_id), is_complete in zip(missed, completed, strict=True)
            if not is_complete
        )

    async def _try_enrich(self, missed: MissedMemory) -> bool:
        """Whether nothing of the memory is missing any more."""
        tenant_id, tenant_name, memory_id = missed
        try:
            enrichment, tenant = self._deps.enrichment, (tenant_id, tenant_name)
            return await enrich_memory(enrichment, enrichment.bulk, tenant, memory_id)
        except Unavailable:
            return False
        # Whatever is wrong with one must not keep the rounds from the others, nor go on for ever.
        except Exception as error:
            log.warning("enrich_failed", memory=str(memory_id), error=type(error).__name__)
            await self._deps.enrichment.enrichment.note_failure(tenant_id, memory_id, error)
            return False

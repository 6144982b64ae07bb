"""Writes recall traces and memory usage to the store in batches, off the request path."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import structlog
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.redaction.redactor import Redactor, RedactorLoader
from reverie.runtime.process.asyncio_helpers import BatchWriter
from reverie.store.search.ranking_signals import UsageRecord, UsageStore
from reverie.store.search.recall_traces import RecallTraceRecord, RecallTraceStore

log = structlog.get_logger("reverie.recall")

MAX_PENDING_TRACES = 200
"""Traces that wait at most: more are dropped and counted."""

TraceBuilder = Callable[[Redactor], RecallTraceRecord]
"""Builds the trace of a recall, after the recall was answered."""


class TraceWriter:
    """Writes recall traces in batches, without the secrets of the vault."""

    def __init__(
        self,
        traces: RecallTraceStore,
        load_redactor: RedactorLoader,
        max_traces: int,
        registry: CollectorRegistry,
    ) -> None:
        """`max_traces`: the most traces kept per tenant; 0 keeps none."""
        self._traces, self._load_redactor, self._max_traces = traces, load_redactor, max_traces
        self._writer = BatchWriter(self._write_all, MAX_PENDING_TRACES)
        self.run, self.flush = self._writer.run, self._writer.flush
        self._dropped = Counter(
            "reverie_recall_traces_dropped",
            "Recall traces dropped, because of load or because Postgres failed.",
            registry=registry,
        )

    def add(self, tenant: int, build: TraceBuilder) -> None:
        """Returns at once; what is too much is dropped."""
        if self._max_traces and not self._writer.add((tenant, build)):
            self._dropped.inc()

    async def _write_all(self, batch: list[tuple[int, TraceBuilder]]) -> None:
        batch.sort(key=itemgetter(0))
        for tenant, entries in groupby(batch, itemgetter(0)):
            builders = [build for _, build in entries]
            try:
                redactor = await self._load_redactor(tenant)
                rows: list[RecallTraceRecord] = []
                for build in builders:
                    # Each takes a millisecond or two: others run in between.
                    await asyncio.sleep(0)
                    rows.append(build(redactor))
                await self._traces.add(tenant, rows, self._max_traces)
            except ReverieError as error:
                self._dropped.inc(len(builders))
                log.warning("traces_dropped", error=type(error).__name__, traces=len(builders))


MAX_PENDING_USES = 5_000
"""Answers whose uses wait at most: those of more are lost, as they are when a process is killed."""

PendingUse = tuple[Principal, UsageRecord]


class UsageWriter:
    """Counts the use of what was answered; a store that does not answer loses it."""

    def __init__(self, usage_store: UsageStore) -> None:
        self._usage_store = usage_store
        self._writer = BatchWriter(self._write_all, MAX_PENDING_USES)
        self.run, self.flush = self._writer.run, self._writer.flush

    def add(self, principal: Principal, session: UUID | None, ids: Sequence[UUID]) -> None:
        """Returns at once."""
        if ids:
            self._writer.add(
                (
                    principal,
                    UsageRecord(build_usage_key(principal, session, datetime.now(UTC)), ids),
                )
            )

    async def _write_all(self, batch: list[PendingUse]) -> None:
        """Records uses grouped by read access; unreadable memories are not counted."""
        by_access: dict[tuple[int, tuple[str, ...]], list[UsageRecord]] = defaultdict(list)
        for principal, use in batch:
            by_access[principal.tenant, principal.reads].append(use)
        for (tenant, reads), uses in by_access.items():
            try:
                await self._usage_store.record(tenant, reads, uses)
            except ReverieError as error:
                log.warning("usage_write_failed", error=type(error).__name__, uses=len(uses))


def build_usage_key(principal: Principal, session: UUID | None, now: datetime) -> str:
    """Builds the key under which a reader counts once: its session, else its key and the hour."""
    return f"session {session}" if session else f"key {principal.key_id} {now:%Y-%m-%dT%H}"

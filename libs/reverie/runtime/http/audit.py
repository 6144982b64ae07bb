"""Audit log: records authenticated requests, mutations before their reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

import structlog
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.access.audit import MAX_SUBJECT_LENGTH, AuditEntry, collect_subjects
from reverie.domain.core.errors import NotFound, Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.exchange import AuditedRoute, IncomingRequest, OutgoingResponse
from reverie.runtime.observability.tracing import current_trace_id
from reverie.runtime.process.asyncio_helpers import BatchWriter
from reverie.runtime.settings.field_types import AuditMode
from reverie.runtime.settings.settings import Settings

log = structlog.get_logger()

MAX_PENDING_ENTRIES = 10_000
"""Reads that wait to be noted at most: more are counted as lost."""
_CLIENT_CLOSED_REQUEST = 499
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class AuditLog(Protocol):
    """Stores audit entries."""

    async def add(self, tenant: int, notes: Sequence[AuditEntry]) -> None:
        """Adds entries of one tenant.

        Raises `NotFound` if the tenant was deleted, and `Unavailable`.
        """


class Auditor:
    """Audits the calls of a service. `mode`: only writes, or all."""

    def __init__(
        self, audit_log: AuditLog, mode: AuditMode, service: str, registry: CollectorRegistry
    ) -> None:
        self._audit_log, self._mode, self._service = audit_log, mode, service
        self._writer = BatchWriter(self._write_all, MAX_PENDING_ENTRIES)
        self._lost_counter = Counter(
            "reverie_audit_lost",
            "Calls missing from the audit log, because it failed or fell behind.",
            registry=registry,
        )

    async def run_writer(self) -> None:
        """Writes entries until it is cancelled; then it writes those that wait."""
        try:
            await self._writer.run()
        finally:
            if waiting := self._writer.take_pending():
                self._count_lost(waiting, "Unavailable")

    async def record(self, request: IncomingRequest, response: OutgoingResponse) -> None:
        """Records an authenticated request, successful or not."""
        entry = self._build_entry(request, response)
        # A change is recorded before its reply: what was acknowledged is in the log. So is a read
        # if too many others wait: nobody can crowd out the entry of a call.
        if entry is not None and (entry.changes or not self._writer.add(entry)):
            await asyncio.shield(self._write(entry.tenant, [entry]))

    def record_interrupted(self, request: IncomingRequest) -> None:
        """Records an authenticated request whose client left before the response."""
        response = OutgoingResponse(_CLIENT_CLOSED_REQUEST, CIMultiDict())
        entry = self._build_entry(request, response)
        if entry is not None and not self._writer.add(entry):
            self._count_lost([entry], "QueueFull")

    def _build_entry(
        self, request: IncomingRequest, response: OutgoingResponse
    ) -> AuditEntry | None:
        """The entry of a request; None if it is not audited."""
        if request.authenticated is None:
            return None
        route, principal = request.authenticated
        if route.delegates or (self._mode != "all" and not is_mutation(route)):
            return None
        return AuditEntry(
            id=new_id(),
            at=datetime.now(UTC),
            tenant=principal.tenant,
            key=principal.key_id,
            actor=principal.actor,
            service=self._service,
            action=route.name,
            changes=is_mutation(route),
            status=response.status,
            problem=request.problem_code,
            subjects=collect_subjects(request.path_values, _json_body(response)),
            trace_id=current_trace_id(),
            client=redact(request.headers.get("User-Agent", "")[:MAX_SUBJECT_LENGTH]).text,
        )

    async def _write_all(self, batch: list[AuditEntry]) -> None:
        batch.sort(key=lambda entry: entry.tenant)
        for tenant, entries in groupby(batch, lambda entry: entry.tenant):
            await self._write(tenant, list(entries))

    async def _write(self, tenant: int, entries: Sequence[AuditEntry]) -> None:
        """Writes entries of one tenant. An error changes no response: the call has happened."""
        try:
            await self._audit_log.add(tenant, entries)
        except NotFound:
            # The deletion of a tenant ends its audit log; only this log can tell of it.
            for entry in entries:
                log.info("audit_ended_with_tenant", actor=entry.actor, action=entry.action)
        except Unavailable as error:
            # They are written once the store answers again.
            refused = [entry for entry in entries if not self._writer.add(entry)]
            if refused:
                self._count_lost(refused, type(error).__name__)
        except Exception as error:
            if len(entries) == 1:
                log.exception("audit_entry_refused", action=entries[0].action)
                self._count_lost(entries, type(error).__name__)
                return
            # One that cannot be stored must not take others along.
            for entry in entries:
                await self._write(tenant, [entry])

    def _count_lost(self, entries: Sequence[AuditEntry], error: str) -> None:
        self._lost_counter.inc(len(entries))
        actions = sorted({entry.action for entry in entries})
        log.error("audit_entry_dropped", error=error, calls=len(entries), actions=actions)


def create_auditor(
    settings: Settings, service: str, audit_log: AuditLog, registry: CollectorRegistry
) -> Auditor | None:
    """Creates the configured auditor; None if auditing is off."""
    return (
        None
        if settings.audit_mode == "off"
        else Auditor(audit_log, settings.audit_mode, service, registry)
    )


def is_mutation(route: AuditedRoute) -> bool:
    """Whether calls of a route change something."""
    return route.method not in _SAFE_METHODS and not route.read_only


def _json_body(response: OutgoingResponse) -> Mapping[str, Any] | None:
    if response.status < 300 and response.body.startswith(b"{"):
        with suppress(ValueError):
            parsed: Mapping[str, Any] = json.loads(response.body)
            return parsed
    return None

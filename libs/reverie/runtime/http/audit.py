"""Audit log: records authenticated requests, mutations before their reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.access.audit import MAX_SUBJECT_LENGTH, AuditEntry, collect_subjects
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
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class AuditLog(Protocol):
    """Stores audit entries."""

    async def add(self, tenant: int, notes: Sequence[AuditEntry]) -> None:
        """Adds entries of one tenant. Raises `Unavailable`."""


class Auditor:
    """Audits the calls of a service. `mode`: only writes, or all."""

    def __init__(
        self, audit_log: AuditLog, mode: AuditMode, service: str, registry: CollectorRegistry
    ) -> None:
        self._audit_log, self._mode, self._service = audit_log, mode, service
        self._writer = BatchWriter(self._write_all, MAX_PENDING_ENTRIES)
        self.run_writer = self._writer.run
        self._lost_counter = Counter(
            "reverie_audit_lost",
            "Calls missing from the audit log, because it failed or fell behind.",
            registry=registry,
        )

    async def record(self, request: IncomingRequest, response: OutgoingResponse) -> None:
        """Records an authenticated request, successful or not."""
        if request.authenticated is None:
            return
        route, principal = request.authenticated
        if route.delegates or (self._mode != "all" and not is_mutation(route)):
            return
        entry = AuditEntry(
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
        if is_mutation(route):
            # Before the reply: what was acknowledged is in the log.
            await self._write(principal.tenant, [entry])
        elif not self._writer.add(entry):
            self._lost_counter.inc()

    async def _write_all(self, batch: list[AuditEntry]) -> None:
        batch.sort(key=lambda entry: entry.tenant)
        for tenant, entries in groupby(batch, lambda entry: entry.tenant):
            await self._write(tenant, list(entries))

    async def _write(self, tenant: int, entries: Sequence[AuditEntry]) -> None:
        try:
            await self._audit_log.add(tenant, entries)
        # The change has happened: an error response would be wrong.
        except Exception as error:
            self._lost_counter.inc(len(entries))
            actions = sorted({entry.action for entry in entries})
            log.error(
                "audit_entry_dropped",
                error=type(error).__name__,
                calls=len(entries),
                actions=actions,
            )


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

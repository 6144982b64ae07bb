"""The audit log: each call with a key is noted, those that change something before their reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry, Counter

from reverie.domain.access import Principal
from reverie.domain.audit import LONGEST_NAME, Audited, AuditMode, subjects_of
from reverie.domain.ids import new_id
from reverie.domain.redaction import redact
from reverie.runtime.later import Later
from reverie.runtime.problems import PROBLEM, Next
from reverie.runtime.routes import ADMITTED
from reverie.runtime.settings import Settings
from reverie.runtime.telemetry import current_trace_id

log = structlog.get_logger()

WAITING = 10_000
"""Reads that wait to be noted at most: more are counted as lost."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Called(Protocol):
    """What is called: a route."""

    @property
    def name(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def reads(self) -> bool: ...
    @property
    def passes_on(self) -> bool: ...


class AuditLog(Protocol):
    """Where the notes are kept."""

    async def add(self, tenant: int, notes: Sequence[Audited]) -> None:
        """Keeps notes on one tenant. Raises `Unavailable`."""


class Auditor:
    """Notes the calls of a service. `mode`: writes alone, or all."""

    def __init__(
        self, kept: AuditLog, mode: AuditMode, service: str, registry: CollectorRegistry
    ) -> None:
        self._kept, self._mode, self._service = kept, mode, service
        self._later = Later(self._write_all, WAITING)
        self.keep_writing = self._later.keep_writing
        self._lost = Counter(
            "reverie_audit_lost",
            "Calls that the audit log should hold and does not: it was away, or behind.",
            registry=registry,
        )

    def middleware(self) -> Middleware:
        """Goes around what answers problems, so that refusals are noted too."""

        @web.middleware
        async def audit(request: web.Request, handler: Next) -> web.StreamResponse:
            response = await handler(request)
            admitted = request.get(ADMITTED)
            if admitted is not None and not admitted[0].passes_on:
                await self._note(request, response, *admitted)
            return response

        return audit

    async def _note(
        self, request: web.Request, response: web.StreamResponse, route: Called, who: Principal
    ) -> None:
        if changes(route):
            # Before the reply: what was acknowledged is in the log.
            await self._write(who.tenant, [self._told(request, response, route, who)])
        elif self._mode == "all" and not self._later.take(
            self._told(request, response, route, who)
        ):
            self._lost.inc()

    def _told(
        self, request: web.Request, response: web.StreamResponse, route: Called, who: Principal
    ) -> Audited:
        return Audited(
            id=new_id(),
            at=datetime.now(UTC),
            tenant=who.tenant,
            key=who.key_id,
            who=who.actor,
            service=self._service,
            action=route.name,
            changes=changes(route),
            status=response.status,
            problem=request.get(PROBLEM),
            subjects=subjects_of(request.match_info, _body(response)),
            trace=current_trace_id(),
            client=redact(request.headers.get("User-Agent", "")[:LONGEST_NAME]).text,
        )

    async def _write_all(self, batch: list[Audited]) -> None:
        batch.sort(key=lambda one: one.tenant)
        for tenant, notes in groupby(batch, lambda one: one.tenant):
            await self._write(tenant, list(notes))

    async def _write(self, tenant: int, notes: Sequence[Audited]) -> None:
        try:
            await self._kept.add(tenant, notes)
        # The change has happened: to refuse it now would say what is not so.
        except Exception as error:
            self._lost.inc(len(notes))
            actions = sorted({one.action for one in notes})
            log.error("audit_lost", error=type(error).__name__, calls=len(notes), actions=actions)


def auditor_of(
    settings: Settings, service: str, kept: AuditLog, registry: CollectorRegistry
) -> Auditor | None:
    """The auditor that the settings want; None where nothing is noted."""
    return None if settings.audit == "off" else Auditor(kept, settings.audit, service, registry)


def changes(route: Called) -> bool:
    """Whether calls of a route change something."""
    return route.method not in _READING and not route.reads


def _body(response: web.StreamResponse) -> Mapping[str, Any] | None:
    body = response.body if isinstance(response, web.Response) else None
    if response.status < 300 and isinstance(body, bytes) and body.startswith(b"{"):
        with suppress(ValueError):
            found: Mapping[str, Any] = json.loads(body)
            return found
    return None

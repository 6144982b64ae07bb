"""The end of the slow path: a memory against those that say alike. Safe to repeat."""

from __future__ import annotations

from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.ingest.parts import Parts
from reverie.runtime.telemetry import inject_headers, span
from reverie.store.settling import settle


async def reconcile(parts: Parts, tenant: int, tenant_name: str, memory: UUID) -> None:
    """Settles one memory with the others of its scope, once all is derived of it."""
    with span("reconcile", memory=str(memory)):
        done = await settle(parts.duplicates, (tenant, tenant_name), memory, inject_headers())
        events = [one.settled.event for one in done]
        await publish_now(parts.bus, parts.outbox, tenant, events)

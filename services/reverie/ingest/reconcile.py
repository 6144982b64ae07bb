"""The end of the slow path: memories against those that say alike. Safe to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.ingest.parts import Parts
from reverie.runtime.telemetry import span
from reverie.store.settling import settle_all


async def reconcile_all(
    parts: Parts, tenant: tuple[int, str], memories: Mapping[UUID, Mapping[str, str]]
) -> None:
    """Settles memories with the others of their scopes, once all is derived of them.

    By memory: the headers that its events go on with.
    """
    with span("reconcile", memories=len(memories)):
        done = await settle_all(parts.duplicates, tenant, memories)
        await publish_now(parts.bus, parts.outbox, tenant[0], [one.settled.event for one in done])

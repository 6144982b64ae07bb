"""What a dream makes of merged branches: their memories hold for the project from then on."""

from __future__ import annotations

from uuid import UUID

from reverie.bus.relay import publish_now
from reverie.domain.dreaming import Decision, Record
from reverie.dream.parts import Parts
from reverie.dream.sessions import LeaseLost
from reverie.runtime.telemetry import inject_headers
from reverie.store.dreams import Lease
from reverie.store.settling import settle

AT_ONCE = 100


async def promote_merged(parts: Parts, lease: Lease, run: UUID, record: Record) -> None:
    """Promotes what waits, some at a time, and settles it with what the project knows: duplicates
    are merged, contradictions linked. Safe to repeat. What is promoted is noted with it."""
    while True:
        found = await parts.dreams.promote(lease, run, AT_ONCE, inject_headers())
        if found is None:
            raise LeaseLost
        for one in found:
            if one.outcome == "promoted":
                await _settle(parts, lease, one.memory, record)
        if len(found) < AT_ONCE:
            return


async def _settle(parts: Parts, lease: Lease, memory: UUID, record: Record) -> None:
    whose = (lease.tenant, lease.tenant_name)
    for one in await settle(parts.duplicates, whose, memory, inject_headers()):
        record.decided(Decision(one.what, one.why, None, one.settled.id))
        await publish_now(parts.bus, parts.outbox, lease.tenant, [one.settled.event])

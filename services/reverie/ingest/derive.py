"""What a memory goes through on the slow path, in groups with those that come beside it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from uuid import UUID

from reverie.bus.errors import one_tenant
from reverie.ingest.enrich import Read, Ready, pieces_all, read_all, write_all
from reverie.ingest.parts import Parts
from reverie.ingest.reconcile import reconcile_all
from reverie.runtime.telemetry import inject_headers, span


async def derive(parts: Parts, tenant: tuple[int, str], memory: UUID) -> bool:
    """Derives what is missing of a memory, and settles it with those that say alike.

    Whether nothing is missing of it any more. Memories of a tenant are written in the order in
    which this was called for them, so that each meets all before it.
    """
    seen, order = 0, parts.order
    while read := await order.read.do(tenant[0], partial(read_all, parts, tenant[0]), memory):
        if not one_tenant(tenant[1], read.raw.tenant_name):
            return False
        if read.raw.version == seen:
            return not read.due
        with _around(read):
            pieces = await order.models.do(tenant[0], partial(pieces_all, parts), read.cut)
            ready = Ready(read, pieces, inject_headers())
            wrote = await order.written.do(tenant[0], partial(_settled, parts, tenant), ready)
        if wrote:
            parts.letters.saw(tenant[0], read.raw.content)
        if wrote or not read.due:
            return True
        # It changed meanwhile, another was quicker, or there is no model.
        seen = read.raw.version
    return True


def _around(read: Read) -> AbstractContextManager[object]:
    return span("enrich", memory=str(read.raw.id)) if read.due else nullcontext()


async def _settled(parts: Parts, tenant: tuple[int, str], group: Sequence[Ready]) -> list[bool]:
    """Writes what is due, and reconciles all. One that is told of twice is written once."""
    due = {one.id: one for one in group if one.read.due and one.wrote is None}
    await write_all(parts, tenant, list(due.values()))
    await reconcile_all(parts, tenant, {one.id: one.headers for one in group})
    return [bool(due.get(one.id, one).wrote) for one in group]

"""What ingest takes from the bus."""

from __future__ import annotations

import asyncio

from pydantic import ValidationError

from reverie.bus.errors import Reject, one_tenant
from reverie.bus.port import Message
from reverie.contracts.events import MemoryEvent
from reverie.domain.errors import Unavailable
from reverie.ingest.enrich import enrich
from reverie.ingest.parts import Parts
from reverie.ingest.reconcile import reconcile

MODEL_PAUSE = 0.1


async def on_remembered(parts: Parts, message: Message) -> None:
    """`memory.<tenant>.remembered`: enriches the memory, once in effect."""
    try:
        event = MemoryEvent.model_validate_json(message.data)
    except ValidationError as error:
        raise Reject(f"not a memory event: {error.error_count()} fields are wrong") from error
    tenant = event.tenant, message.subject.split(".")[1]
    # Before anything is awaited: messages are handled side by side, and begun as they came.
    with parts.order.place(event.tenant) as place:
        await _model_tried(parts)
        raw = await parts.enrichment.read(event.tenant, event.id)
        if raw is None or not one_tenant(tenant[1], raw.tenant_name):
            return
        # What was superseded meanwhile is told to nobody who derives from it.
        while raw and not await enrich(parts, tenant[0], raw, place):
            seen, raw = raw.version, await parts.enrichment.read(event.tenant, event.id)
            if raw and raw.version == seen:
                break
        await place.turn()
        await reconcile(parts, *tenant, event.id)


async def _model_tried(parts: Parts) -> None:
    """Waits for the first try to load the model: what came before would lack its vectors until
    the clock comes round."""
    while True:
        try:
            return await parts.model.check()
        except Unavailable:
            await asyncio.sleep(MODEL_PAUSE)

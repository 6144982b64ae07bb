"""What ingest takes from the bus."""

from __future__ import annotations

from pydantic import ValidationError

from reverie.bus.errors import Reject
from reverie.bus.port import Message
from reverie.contracts.events import MemoryEvent
from reverie.ingest.derive import derive
from reverie.ingest.parts import Parts


async def on_remembered(parts: Parts, message: Message) -> None:
    """`memory.<tenant>.remembered`: derives from the memory, once in effect."""
    try:
        event = MemoryEvent.model_validate_json(message.data)
    except ValidationError as error:
        raise Reject(f"not a memory event: {error.error_count()} fields are wrong") from error
    # Without its first try to load the model, what came before would lack its vectors until the
    # clock comes round.
    await parts.model.tried()
    await derive(parts, (event.tenant, message.subject.split(".")[1]), event.id)

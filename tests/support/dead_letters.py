"""Buries a message among the dead letters, as a worker does that gives it up."""

from __future__ import annotations

from uuid import uuid4

from reverie.bus.dead_letters import DeadLetterOrigin, list_dead_letters, publish_dead_letter
from reverie.bus.interface import Message
from reverie.bus.nats_bus import connect
from reverie.contracts.events import DREAM_STREAM, dream_subject
from tests.support.stack import Stack


async def bury(stack: Stack, reason: str = "broken", data: bytes = b"{}") -> int:
    """The number of a new dead letter of the tenant: a ticket for a dream of no scope."""
    origin = DeadLetterOrigin(DREAM_STREAM, "dream-workers", str(uuid4()))
    message = Message(dream_subject(stack.tenant, origin.ref), data, {}, 5)
    assert stack.settings.nats_url
    async with connect(stack.settings.nats_url.get_secret_value(), "test") as bus:
        await bus.wait_connected(30)
        await publish_dead_letter(bus, origin, message, reason)
        letters = await list_dead_letters(bus, limit=1000, tenant=stack.tenant)
    return next(letter.seq for letter in letters if letter.origin == origin)

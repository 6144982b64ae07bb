"""What dream takes from the bus: tickets. Any ticket wakes; Postgres says what is due."""

from __future__ import annotations

import json

from reverie.bus.port import Message
from reverie.bus.relay import publish_now
from reverie.dream.digest import PARKED, dream
from reverie.dream.parts import Parts


async def on_ticket(parts: Parts, message: Message) -> None:
    """Dreams until nothing is due. A dream that failed is due again after its pause, and is found
    by whoever looks then; a dead letter that is sent again wakes the job that it was parked for."""
    if PARKED in message.headers:
        await _wake(parts, message)
    await dream_all(parts)


async def dream_all(parts: Parts) -> None:
    """Claims and dreams, the fairest first, until nothing is due."""
    while lease := await parts.dreams.claim(parts.settings.worker, parts.settings.lease_seconds):
        await dream(parts, lease)


async def _wake(parts: Parts, message: Message) -> None:
    body = json.loads(message.data)
    tenant, name = int(body["tenant"]), message.subject.split(".")[1]
    _, ticket = await parts.dreams.request(tenant, name, str(body["scope"]), "replayed", {})
    await publish_now(parts.bus, parts.outbox, tenant, [ticket])

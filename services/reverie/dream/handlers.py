"""What dream takes from the bus: tickets. Any ticket wakes; Postgres says what is due."""

from __future__ import annotations

import json

from reverie.bus.errors import Reject, one_tenant
from reverie.bus.port import Message
from reverie.bus.relay import publish_now
from reverie.dream.digest import PARKED
from reverie.dream.parts import Parts
from reverie.dream.worker import Worker


async def on_ticket(parts: Parts, worker: Worker, message: Message) -> None:
    """Dreams until nothing is due. A dead letter that is sent again wakes the job it was parked
    for."""
    if PARKED in message.headers:
        await _wake(parts, message)
    await worker.dream_all()


async def _wake(parts: Parts, message: Message) -> None:
    try:
        body = json.loads(message.data)
        tenant, scope = int(body["tenant"]), str(body["scope"])
    except (ValueError, KeyError, TypeError) as error:
        raise Reject("not a ticket for a dream") from error
    name = message.subject.split(".")[1]
    if not one_tenant(name, await parts.dreams.tenant_name(tenant)):
        return
    _, ticket = await parts.dreams.request(tenant, name, scope, "replayed", {})
    await publish_now(parts.bus, parts.outbox, tenant, [ticket])

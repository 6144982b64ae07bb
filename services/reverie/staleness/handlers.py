"""What staleness takes from the bus."""

from __future__ import annotations

import asyncio
from uuid import UUID

import structlog
from pydantic import ValidationError

from reverie.bus.errors import Reject, one_tenant
from reverie.bus.port import Message
from reverie.contracts.events import GitEvent
from reverie.domain.errors import ReverieError
from reverie.staleness.parts import Parts
from reverie.staleness.propagate import apply_change

log = structlog.get_logger("reverie.staleness")


async def on_changed(parts: Parts, message: Message) -> None:
    """`git.<tenant>.<project>.changed`: applies the change, once in effect."""
    try:
        event = GitEvent.model_validate_json(message.data)
    except ValidationError as error:
        raise Reject(f"not a git event: {error.error_count()} fields are wrong") from error
    name = message.subject.split(".")[1]
    if one_tenant(name, await parts.changes.tenant_name(event.tenant)):
        await apply_change(parts, event.tenant, name, event.id)


async def catch_up(parts: Parts) -> None:
    """Applies changes whose event was lost, for ever. Cancel it to stop."""
    while True:
        await asyncio.sleep(parts.settings.sweep_seconds)
        try:
            for tenant, name, change in await parts.changes.unprocessed(parts.settings.sweep_age):
                await _caught_up(parts, tenant, name, change)
        except ReverieError as error:
            log.warning("catch_up_put_off", reason=str(error))


async def _caught_up(parts: Parts, tenant: int, tenant_name: str, change: UUID) -> None:
    """Whatever is wrong with one change must not hold up the others."""
    try:
        await apply_change(parts, tenant, tenant_name, change)
    except Exception as error:
        log.warning("change_failed", change=str(change), error=type(error).__name__)

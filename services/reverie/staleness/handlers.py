"""What staleness takes from the bus."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import structlog
from pydantic import ValidationError

from reverie.bus.errors import Reject, one_tenant
from reverie.bus.port import Message
from reverie.bus.relay import publish_now
from reverie.contracts.events import GitEvent
from reverie.contracts.git import GitChange
from reverie.domain.errors import Invalid, Malformed, NotFound, ReverieError
from reverie.runtime.body import parse_value
from reverie.staleness.intake import take
from reverie.staleness.parts import Parts
from reverie.staleness.propagate import apply_change, look_again
from reverie.store.hooks import announcer

log = structlog.get_logger("reverie.staleness")


async def on_changed(parts: Parts, message: Message) -> None:
    """`git.<tenant>.<project>.changed`: applies a change that is stored, once in effect; stores one
    that a publisher tells whole, whose own event then follows."""
    body = _object(message.data)
    if "after" in body or "files" in body:
        await _take_told(parts, message.subject, body)
        return
    try:
        event = GitEvent.model_validate(body)
    except ValidationError as error:
        raise Reject(f"not a git event: {error.error_count()} fields are wrong") from error
    name = message.subject.split(".")[1]
    if not one_tenant(name, await parts.changes.tenant_name(event.tenant)):
        return
    if event.id is not None:
        await apply_change(parts, event.tenant, name, event.id)
    if event.memory is not None:
        await look_again(parts, event.tenant, name, event.project, event.memory)


async def _take_told(parts: Parts, subject: str, body: dict[str, Any]) -> None:
    """The subject says whose it is, for who may publish there is the server's to say."""
    _, name, project, _ = subject.split(".")
    if body.setdefault("project", project) != project or "tenant" in body:
        raise Reject("its body speaks of another project or of a tenant: the subject says it")
    tenant = await parts.hooks.tenant_called(name)
    if tenant is None:
        raise Reject("there is no such tenant")
    who = announcer(tenant, name, project, "bus")
    try:
        stored, known, events = await take(parts, who, parse_value(GitChange, body))
    except (Invalid, NotFound, Malformed) as error:
        raise Reject(str(error)) from error
    log.info("change_told", change=str(stored), known=known)
    await publish_now(parts.bus, parts.outbox, tenant, events)


def _object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise Reject("not a git event: it is not JSON") from None
    if not isinstance(body, dict):
        raise Reject("not a git event: it is no JSON object")
    return body


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

"""Handles git change events from the bus, and catches up on lost ones."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import structlog
from pydantic import ValidationError

from reverie.bus.interface import Message, Reject, verify_tenant
from reverie.contracts.events import GitEvent
from reverie.contracts.memories.git import GitChange
from reverie.domain.core.errors import InvalidInput, MalformedInput, ReverieError, Unavailable
from reverie.runtime.http.validation import parse_value
from reverie.store.platform.webhooks import create_webhook_principal
from reverie_services.staleness.change_intake import store_change
from reverie_services.staleness.dependencies import StalenessDependencies
from reverie_services.staleness.marks.apply_change import apply_change, recompute_marks

log = structlog.get_logger("reverie.staleness")

CATCH_UP_INTERVAL = 15.0
SWEEP_AGE = 30.0
"""Seconds after which the event of a change that is not applied counts as lost."""


async def handle_change(deps: StalenessDependencies, message: Message) -> None:
    """Handles `git.<tenant>.<project>.changed`: applies a stored change, with effect once.

    If a publisher sends a whole change, stores it; the stored change has an event of its own.
    """
    body = _parse_object(message.data)
    if "after" in body or "files" in body:
        await _store_published_change(deps, message.subject, body)
        return
    try:
        event = GitEvent.model_validate(body)
    except ValidationError as error:
        raise Reject(f"not a git event: {error.error_count()} fields are wrong") from error
    name = message.subject.split(".")[1]
    if not verify_tenant(name, await deps.changes.get_tenant_name(event.tenant)):
        return
    if event.id is not None:
        await apply_change(deps, event.tenant, name, event.id)
    if event.memory is not None:
        await recompute_marks(deps, event.tenant, name, event.project, event.memory)


async def _store_published_change(
    deps: StalenessDependencies, subject: str, body: dict[str, Any]
) -> None:
    """Stores a published change.

    The subject names the owner: the server checks who may publish on it.
    """
    _, name, project, _ = subject.split(".")
    if body.setdefault("project", project) != project or "tenant" in body:
        raise Reject("its body speaks of another project or of a tenant: the subject says it")
    tenant = await deps.webhooks.find_tenant(name)
    if tenant is None:
        raise Reject("there is no such tenant")
    principal = create_webhook_principal(tenant, name, project, "bus")
    try:
        stored = await store_change(deps, principal, parse_value(GitChange, body))
    except (InvalidInput, MalformedInput) as error:
        raise Reject(str(error)) from error
    log.info("change_announced", change=str(stored.id), known=stored.is_duplicate)
    await deps.publisher.publish(tenant, stored.events)


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise Reject("not a git event: it is not JSON") from None
    if not isinstance(body, dict):
        raise Reject("not a git event: it is no JSON object")
    return body


async def run_catch_up_loop(deps: StalenessDependencies) -> None:
    """Applies changes whose event was lost, until it is cancelled."""
    while True:
        await asyncio.sleep(CATCH_UP_INTERVAL)
        try:
            for tenant, name, change in await deps.changes.list_unprocessed(SWEEP_AGE):
                await _try_apply_change(deps, tenant, name, change)
        except ReverieError as error:
            log.warning("catch_up_postponed", reason=str(error))


async def _try_apply_change(
    deps: StalenessDependencies, tenant: int, tenant_name: str, change: UUID
) -> None:
    """Whatever is wrong with one change must not hold up the others, nor be tried for ever."""
    try:
        await apply_change(deps, tenant, tenant_name, change)
    except Unavailable:
        raise
    except Exception as error:
        log.warning("change_failed", change=str(change), error=type(error).__name__)
        await deps.changes.note_failure(tenant, change, error)

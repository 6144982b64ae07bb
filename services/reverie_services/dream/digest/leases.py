"""Renews a lease while its work runs, and publishes progress."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from reverie.contracts.events import build_outgoing_event, memory_subject
from reverie.domain.core.errors import ReverieError
from reverie.store.sessions.dream_queue import DreamLease
from reverie_services.dream.dependencies import DigestDependencies

Made = TypeVar("Made")


class LeaseLost(Exception):
    """Another worker has the scope: what this one holds is void."""


def ensure_lease_held(is_held: bool) -> None:
    """Raises `LeaseLost` if another worker holds the scope."""
    if not is_held:
        raise LeaseLost


async def run_with_heartbeat(
    heartbeat: Coroutine[Any, Any, NoReturn], work: Coroutine[Any, Any, Made]
) -> Made:
    """Returns the result of `work`; cancels it and raises if the heartbeat fails."""
    work_task, heartbeat_task = asyncio.create_task(work), asyncio.create_task(heartbeat)
    try:
        done, _ = await asyncio.wait(
            {work_task, heartbeat_task}, return_when=asyncio.FIRST_COMPLETED
        )
        return await (work_task if work_task in done else heartbeat_task)
    finally:
        for task in (work_task, heartbeat_task):
            task.cancel()
        await asyncio.gather(work_task, heartbeat_task, return_exceptions=True)


async def renew_lease(deps: DigestDependencies, lease: DreamLease, run: UUID) -> NoReturn:
    """Renews the lease every third of its time, until that fails, and publishes progress."""
    lease_seconds = deps.settings.lease_seconds
    previous = None
    while True:
        await asyncio.sleep(lease_seconds / 3)
        ensure_lease_held(await deps.dreams.renew(lease, lease_seconds))
        progress = await deps.dreams.load_progress(lease, run)
        if progress and progress != previous:
            subject = memory_subject(lease.tenant_name, "digesting")
            # Progress is published again soon, so a lost message does no harm.
            with suppress(ReverieError):
                await deps.publisher.bus.publish(
                    build_outgoing_event(lease.tenant, subject, progress, {})
                )
        previous = progress

"""The dream worker: claims due scopes by ticket or by polling, and runs their dreams."""

from __future__ import annotations

import asyncio
import json
import random

import structlog

from reverie.bus.interface import Message, Reject, verify_tenant
from reverie.domain.core.errors import ReverieError
from reverie.store.sessions.dream_queue import DreamLease
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.run_dream import PARKED_HEADER, run_dream

log = structlog.get_logger("reverie.dream")


class DreamWorker:
    """A worker that is woken by tickets, and that polls the queue periodically.

    Polling finds jobs without a ticket: those of a dead worker, and failed ones that are due again.
    """

    def __init__(self, deps: DigestDependencies) -> None:
        self.deps = deps
        self._lock = asyncio.Lock()

    async def run_due_dreams(self) -> None:
        """Claims and dreams, the fairest first, until nothing is due."""
        settings = self.deps.settings
        async with self._lock:
            while lease := await self.deps.dreams.claim(settings.worker, settings.lease_seconds):
                try:
                    await run_dream(self.deps, lease)
                except asyncio.CancelledError:
                    await asyncio.shield(self._release(lease))
                    raise

    async def run_polling_loop(self) -> None:
        """Looks for jobs until it is cancelled."""
        while True:
            await asyncio.sleep(self.deps.settings.poll_interval * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                await self.run_due_dreams()
            except ReverieError as error:
                log.warning("poll_postponed", reason=str(error))

    async def _release(self, lease: DreamLease) -> None:
        """Releases the scope at once for the next worker, if this one is stopped."""
        deps = self.deps
        try:
            ticket = await deps.dreams.release(lease, {})
            if ticket:
                await deps.publisher.publish(lease.tenant, [ticket])
        except ReverieError as error:
            log.warning("lease_release_failed", reason=str(error))


async def handle_ticket(worker: DreamWorker, message: Message) -> None:
    """Dreams until nothing is due. A dead letter that is sent again wakes the job it was parked
    for."""
    if PARKED_HEADER in message.headers:
        await _wake_parked_job(worker.deps, message)
    await worker.run_due_dreams()


async def _wake_parked_job(deps: DigestDependencies, message: Message) -> None:
    try:
        body = json.loads(message.data)
        tenant, scope = int(body["tenant"]), str(body["scope"])
    except (ValueError, KeyError, TypeError) as error:
        raise Reject("not a ticket for a dream") from error
    name = message.subject.split(".")[1]
    if not verify_tenant(name, await deps.dream_runs.get_tenant_name(tenant)):
        return
    _, ticket = await deps.dreams.request(tenant, name, scope, "replayed", {})
    await deps.publisher.publish(tenant, [ticket])

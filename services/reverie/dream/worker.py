"""A worker: whatever wakes it, it dreams until nothing is due, one dream at a time."""

from __future__ import annotations

import asyncio
import random

import structlog

from reverie.bus.relay import publish_now
from reverie.domain.errors import ReverieError
from reverie.dream.digest import dream
from reverie.dream.parts import Parts
from reverie.store.dreams import Lease

log = structlog.get_logger("reverie.dream")


class Worker:
    """Wakes by a ticket, and by a look at the queue now and then: a job that a dead worker left, or
    one that failed and is due again, has no ticket of its own."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._busy = asyncio.Lock()

    async def dream_all(self) -> None:
        """Claims and dreams, the fairest first, until nothing is due."""
        settings = self._parts.settings
        async with self._busy:
            while lease := await self._parts.dreams.claim(settings.worker, settings.lease_seconds):
                await self._dream(lease)

    async def keep_looking(self) -> None:
        """Looks for ever. Cancel it to stop."""
        while True:
            await asyncio.sleep(self._parts.settings.look_seconds * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                await self.dream_all()
            except ReverieError as error:
                log.warning("look_put_off", reason=str(error))

    async def _dream(self, lease: Lease) -> None:
        try:
            await dream(self._parts, lease)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(lease))
            raise

    async def _give_back(self, lease: Lease) -> None:
        """A worker that is told to stop leaves its scope to the next at once."""
        parts = self._parts
        try:
            ticket = await parts.dreams.release(lease, {})
            if ticket:
                await publish_now(parts.bus, parts.outbox, lease.tenant, [ticket])
        except ReverieError as error:
            log.warning("lease_left_to_run_out", reason=str(error))

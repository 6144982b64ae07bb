"""Limits how many recalls run at once; a bounded queue waits for a slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from reverie.domain.core.errors import Overloaded


class RecallConcurrencyLimit:
    """Lets `max_running` in at once; `queue` more wait their turn, half of `seconds` at most."""

    def __init__(self, max_running: int, max_waiting: int, timeout: float) -> None:
        self.max_running, self._max_waiting, self._timeout = max_running, max_waiting, timeout
        self._semaphore = asyncio.Semaphore(max_running)
        self.running, self.waiting = 0, 0

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[float]:
        """A place inside, given back at the end: what is left of the seconds.

        Raises `Overloaded` where there is none in time.
        """
        started = monotonic()
        await self._wait_for_slot()
        self.running += 1
        try:
            yield self._timeout - (monotonic() - started)
        finally:
            self.running -= 1
            self._semaphore.release()

    async def _wait_for_slot(self) -> None:
        if self._semaphore.locked() and self.waiting >= self._max_waiting:
            raise self._build_overloaded_error()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout / 2):
                await self._semaphore.acquire()
        except TimeoutError:
            raise self._build_overloaded_error() from None
        finally:
            self.waiting -= 1

    def _build_overloaded_error(self) -> Overloaded:
        return Overloaded("recalls", self.max_running, self.waiting)

"""How many recalls are carried out at once: what else the gateway does must not starve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from reverie.domain.errors import Crowded


class Gate:
    """Lets `parallel` in at once; `queue` more wait their turn, half of `seconds` at most."""

    def __init__(self, parallel: int, queue: int, seconds: float) -> None:
        self.parallel, self._queue, self._seconds = parallel, queue, seconds
        self._free = asyncio.Semaphore(parallel)
        self.running, self.waiting = 0, 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """A place inside, given back at the end: what is left of the seconds.

        Raises `Crowded` where there is none in time.
        """
        begun = monotonic()
        await self._enter()
        self.running += 1
        try:
            yield self._seconds - (monotonic() - begun)
        finally:
            self.running -= 1
            self._free.release()

    async def _enter(self) -> None:
        if self._free.locked() and self.waiting >= self._queue:
            raise self._crowded()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._seconds / 2):
                await self._free.acquire()
        except TimeoutError:
            raise self._crowded() from None
        finally:
            self.waiting -= 1

    def _crowded(self) -> Crowded:
        return Crowded("recalls", self.parallel, self.waiting)

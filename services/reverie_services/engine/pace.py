"""Lets few turns of a worker ask memory at once, so that the texts of others are passed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

PLACES = 2
"""More at once are no faster, and hold up the texts that the same gateway passes on."""
LONGEST = 0.1
"""Seconds after which one that waits for a slow answer gives its place to the next."""


class Pace:
    """A few places; a turn holds one while it asks, but not for long."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(PLACES)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Waits for a place, and holds it."""
        await self._places.acquire()
        with ExitStack() as held:
            held.callback(self._places.release)
            timer = asyncio.get_running_loop().call_later(LONGEST, held.close)
            held.callback(timer.cancel)
            yield

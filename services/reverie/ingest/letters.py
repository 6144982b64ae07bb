"""Tenants whose memories come in letters that the default model does not read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from reverie.domain.letters import is_east_asian

EVERY = 20
"""Of so many such memories of a tenant that come, the first has the tenant looked at."""
AGAIN_SECONDS = 60.0
"""How often one of those is looked at again that could not be moved."""


class Letters:
    """What this process saw of each tenant: such memories counted, and whom to look at.

    `unread`: tenants that should go by a model which reads their memories, and do not. `whole`:
    those of which nothing lacks a vector of the model that they were moved to.
    """

    def __init__(self) -> None:
        self.unread: set[int] = set()
        self.whole: set[int] = set()
        self._seen: dict[int, int] = {}
        self._due: asyncio.Queue[int] = asyncio.Queue()
        self._later: dict[int, None] = {}
        self._next = 0.0

    def saw(self, tenant: int, content: str) -> None:
        """Takes note of a memory that came."""
        if not is_east_asian(content):
            return
        seen = self._seen.get(tenant, 0)
        self._seen[tenant] = seen + 1
        if seen % EVERY == 0:
            self._due.put_nowait(tenant)

    @property
    def waiting(self) -> int:
        """How many are to be looked at."""
        return self._due.qsize()

    def later(self, tenant: int) -> None:
        """Has the tenant looked at again, after those that wait for it already."""
        if not self._later:
            self._next = monotonic() + AGAIN_SECONDS
        self._later[tenant] = None

    async def due(self) -> int:
        """The next tenant to look at, once there is one: now and then one that was before."""
        if not self._later:
            return await self._due.get()
        if (pause := self._next - monotonic()) > 0:
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._due.get(), pause)
        self._next = monotonic() + AGAIN_SECONDS
        again = next(iter(self._later))
        del self._later[again]
        return again

"""Tenants whose memories come in letters that the default model does not read."""

from __future__ import annotations

import asyncio

from reverie.domain.letters import is_east_asian

EVERY = 20
"""Of so many such memories of a tenant that come, the first has the tenant looked at."""


class Letters:
    """What this process saw of each tenant: such memories counted, and whom to look at.

    `unread`: tenants that should go by a model which reads their memories, and do not.
    """

    def __init__(self) -> None:
        self.unread: set[int] = set()
        self._seen: dict[int, int] = {}
        self._due: asyncio.Queue[int] = asyncio.Queue()

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

    async def due(self) -> int:
        """The next tenant to look at, once there is one."""
        return await self._due.get()

"""Turns: what is done ahead may overlap, what comes after it happens in the order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Place:
    """A place in the queue of a tenant, from when it was taken."""

    def __init__(self, before: asyncio.Future[None] | None) -> None:
        self._before = before
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def turn(self) -> None:
        """Waits until all that came before have left; returns at once when asked again."""
        if self._before is not None:
            await asyncio.shield(self._before)

    def leave(self) -> None:
        """Lets the next one on: at once, or as soon as it would have been one's own turn."""
        if self._before is None or self._before.done():
            self.left.set_result(None)
        else:
            self._before.add_done_callback(lambda _: self.left.set_result(None))


class Order:
    """The queues of tenants. They share nothing, so that none waits for another's."""

    def __init__(self) -> None:
        self._last: dict[int, asyncio.Future[None]] = {}

    @contextmanager
    def place(self, tenant: int) -> Iterator[Place]:
        """The next place in the queue of a tenant, until the context ends, however it does."""
        mine = Place(self._last.get(tenant))
        self._last[tenant] = mine.left
        mine.left.add_done_callback(lambda left: self._forget(tenant, left))
        try:
            yield mine
        finally:
            mine.leave()

    def _forget(self, tenant: int, left: asyncio.Future[None]) -> None:
        if self._last.get(tenant) is left:
            del self._last[tenant]

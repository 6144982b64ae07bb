"""Connections at hand: a pool takes a task, two timers and a queue each time it lends one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, TypeAlias

import asyncpg

from reverie.store.pool_meters import PoolMeters

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

KEPT_SECONDS = 10.0
"""After so long what is free goes back to its pool, which closes what nobody needs."""


class Hand:
    """Lends the connections of a pool, and keeps those that come back for whoever asks next.

    All who use the pool ask here: it does not see what is kept. What did not end well goes back to
    it, and so does any where somebody waits for one.
    """

    def __init__(
        self, name: str, pool: asyncpg.Pool[asyncpg.Record], timeout: float, meters: PoolMeters
    ) -> None:
        """`timeout`: seconds that a connection is waited for, and that giving it back may take."""
        self._pool, self._timeout = pool, timeout
        self._free: list[Connection] = []
        self._waiting = 0
        self._ending: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._told = meters.watch(name, self)

    @property
    def busy(self) -> int:
        """Connections that are lent."""
        return self._pool.get_size() - self.idle

    @property
    def idle(self) -> int:
        """Connections that nobody uses."""
        return self._pool.get_idle_size() + len(self._free)

    @property
    def limit(self) -> int:
        """Connections that may be open."""
        return self._pool.get_max_size()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Connection]:
        """A connection. Raises `TimeoutError`, and what opening one raises."""
        one, since = await self._taken()
        sound = False
        try:
            yield one
            sound = True
        finally:
            await self._give_back(one, sound)
            self._told.held.observe(perf_counter() - since)

    async def row(self, sql: str, seconds: float) -> asyncpg.Record | None:
        """The first row of a statement. Raises as `lent`, and `TimeoutError` after `seconds`.

        A connection to a server that fell silent takes longer to be given up: that goes on beside.
        """

        async def asked() -> asyncpg.Record | None:
            async with self.lent() as connection:
                return await connection.fetchrow(sql)

        asking = asyncio.create_task(asked())
        self._ending.add(asking)
        asking.add_done_callback(self._ended)
        try:
            await asyncio.wait({asking}, timeout=seconds)
            if not asking.done():
                raise TimeoutError
            return asking.result()
        finally:
            asking.cancel()

    async def _taken(self) -> tuple[Connection, float]:
        """A connection, and since when it is lent."""
        begun = perf_counter()
        try:
            one = await self._take()
        except Exception:
            self._told.failed.inc()
            raise
        since = perf_counter()
        self._told.waits.observe(since - begun)
        return one, since

    async def _take(self) -> Connection:
        while self._free:
            one = self._free.pop()
            if _stands(one):
                return one
            await self._release(one)
        self._waiting += 1
        try:
            # Its own timeout would take a task for each.
            async with asyncio.timeout(self._timeout):
                return await self._pool.acquire()  # type: ignore[return-value]
        finally:
            self._waiting -= 1

    async def _give_back(self, one: Connection, sound: bool) -> None:
        """Keeps what ended as it should, unless somebody waits for one."""
        if not sound or self._waiting or self._closed or not _stands(one):
            await self._release(one)
            return
        self._free.append(one)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(KEPT_SECONDS, self._put_down)

    async def close(self) -> None:
        """Gives all that is free back to the pool, and from now on whatever comes back."""
        self._closed = True
        self._put_down()
        if self._ending:
            await asyncio.wait(self._ending)

    def _put_down(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._free:
            task = asyncio.get_running_loop().create_task(self._release(self._free.pop()))
            self._ending.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Nobody asks any more how it went: the pool drops what it cannot take back."""
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()

    async def _release(self, one: Any) -> None:
        await self._pool.release(one, timeout=self._timeout)


def _stands(one: Connection) -> bool:
    """Whether it is open and rests: of one that was lost the pool has taken hold already."""
    try:
        return not one.is_closed() and not one.is_in_transaction()
    except asyncpg.InterfaceError:
        return False

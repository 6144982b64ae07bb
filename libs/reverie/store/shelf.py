"""What is kept in memory of the tenants that ask most: read beside the requests, never in one."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import asyncpg
import structlog

from reverie.domain.errors import ReverieError

log = structlog.get_logger("reverie.store")

PAUSE_SECONDS = 30.0
BLIND_SECONDS = 5.0
"""How long after it was read something is read again: what is kept, and what is not."""
SHARE = 50
"""Reading one thing anew takes at most one part in so many of the time; so does reading what there
is no room for, in all."""
RESTING = 1_000
"""Of how many it is known when they may be read again."""

Name = tuple[int, str]
"""A tenant, and a table."""


class Sized(Protocol):
    """What can be kept."""

    @property
    def nbytes(self) -> int: ...


K = TypeVar("K", bound=Sized)


class Shelf(ABC, Generic[K]):
    """Keeps at most `megabytes`, of the tenants that asked last."""

    def __init__(self, megabytes: int) -> None:
        self._most = megabytes * 1_000_000
        self._kept: OrderedDict[Name, K] = OrderedDict()
        self._wanted: dict[Name, None] = {}
        self._again: dict[Name, float] = {}
        self._full_until = 0.0
        self._asked = asyncio.Event()

    @abstractmethod
    async def _read(self, name: Name) -> K | None:
        """What is to be kept now; None where that is not worth it."""

    def _of(self, name: Name) -> K | None:
        """What is kept; where that is nothing, it is read soon."""
        kept = self._kept.get(name)
        if kept is None:
            self._want(name)
        else:
            self._kept.move_to_end(name)
        return kept

    def _drop(self, name: Name) -> None:
        if self._kept.pop(name, None) is not None:
            self._full_until = 0.0

    def _want(self, name: Name) -> None:
        if self._may_read(name) and time.monotonic() >= self._again.get(name, 0.0):
            self._wanted[name] = None
            self._asked.set()

    def _may_read(self, name: Name) -> bool:
        return name in self._kept or time.monotonic() >= self._full_until

    async def keep_reading(self) -> None:
        """Reads what is wanted, beside the requests. A background task."""
        while True:
            await self._asked.wait()
            await self._read_next()

    async def read_wanted(self) -> None:
        """Reads all that is wanted now."""
        while self._wanted:
            await self._read_next()

    async def _read_next(self) -> None:
        """Reads what has been wanted longest, if it still may be."""
        name = next(iter(self._wanted))
        try:
            if self._may_read(name):
                await self._read_one(name)
        finally:
            # Who asked meanwhile has it now.
            self._wanted.pop(name, None)
            if not self._wanted:
                self._asked.clear()

    async def _read_one(self, name: Name) -> None:
        begun, read = time.monotonic(), None
        try:
            read = await self._read(name)
        except (ReverieError, asyncpg.PostgresError) as error:
            log.warning("tenant_not_kept", table=name[1], error=type(error).__name__)
        now = time.monotonic()
        took = SHARE * (now - begun)
        self._rests(name, now + max(BLIND_SECONDS if read is None else PAUSE_SECONDS, took))
        if read is not None and not self._had_room(name, read):
            self._full_until = now + took

    def _rests(self, name: Name, until: float) -> None:
        """It is not read again before that."""
        self._again[name] = max(until, self._again.get(name, 0.0))
        while len(self._again) > RESTING:
            del self._again[next(iter(self._again))]

    def _had_room(self, name: Name, read: K) -> bool:
        """Keeps it; whether there was room without driving out others."""
        self._kept.pop(name, None)
        if read.nbytes > self._most:  # it would drive all others out, and not stay itself
            return False
        self._kept[name] = read
        gone = list(self._too_many())
        for one in gone:
            del self._kept[one]
            self._rests(one, time.monotonic() + 2 * PAUSE_SECONDS)
        return not gone

    def _too_many(self) -> Iterator[Name]:
        """Those that asked longest ago, as far as there is no room for them."""
        over = sum(one.nbytes for one in self._kept.values()) - self._most
        for name, one in self._kept.items():
            if over <= 0:
                return
            yield name
            over -= one.nbytes

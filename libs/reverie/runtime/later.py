"""What requests leave behind is written beside them, many at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

PAUSE_SECONDS = 0.5

T = TypeVar("T")


class Later(Generic[T]):
    """Holds what is to be written, `most` at a time, and hands it on together."""

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[None]],
        most: int,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._write, self._pause = write, pause
        self._waiting: deque[T] = deque()
        self._most = most
        self._some = asyncio.Event()
        self._writing = asyncio.Lock()

    def take(self, one: T) -> bool:
        """Returns at once; false where too much waits already."""
        if len(self._waiting) >= self._most:
            return False
        self._waiting.append(one)
        self._some.set()
        return True

    async def keep_writing(self) -> None:
        """Writes for ever; cancelled, it writes what still waits."""
        try:
            while True:
                await self._some.wait()
                await asyncio.sleep(self._pause)
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Writes what waits, and returns once what was under way is written too."""
        async with self._writing:
            batch = list(self._waiting)
            self._waiting.clear()
            self._some.clear()
            if batch:
                await self._write(batch)

"""Runs coroutines on an event loop in a thread of its own, for synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")
_END: Any = object()


class BlockingPortal:
    """Runs coroutines to their end; from any thread, also one that has a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reverie-client", daemon=True
        )
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Runs it and returns its result, or raises; cancels it if the wait is interrupted."""
        if self.is_closed:
            coroutine.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[Result]) -> Iterator[Result]:
        """Yields the items one at a time, as they are consumed; the rest is discarded."""
        try:
            while (item := self.run(_next(items))) is not _END:
                yield item
        finally:
            if not self.is_closed:
                self.run(_close(items))

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be run any more."""
        return self._loop.is_closed()

    def close(self) -> None:
        """Ends the thread."""
        if self.is_closed:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[Result]) -> Result:
    item: Result = await anext(items, _END)
    return item


async def _close(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()

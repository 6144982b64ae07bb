"""An event loop in a thread of its own, for code that does not await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")
_END: Any = object()


class Portal:
    """Runs coroutines to their end; from any thread, also one that has a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reverie-client", daemon=True
        )
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What it gives, or raises; it is cancelled where the wait is broken off."""
        if self.closed:
            work.close()
            raise RuntimeError("the client is closed")
        doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return doing.result()
        except BaseException:
            doing.cancel()
            raise

    def each(self, items: AsyncIterator[Result]) -> Iterator[Result]:
        """The items, one at a time, as they are taken; what is left is given up."""
        try:
            while (item := self.wait(_next(items))) is not _END:
                yield item
        finally:
            if not self.closed:
                self.wait(_close(items))

    @property
    def closed(self) -> bool:
        """Whether nothing can be run any more."""
        return self._loop.is_closed()

    def close(self) -> None:
        """Ends the thread."""
        if self.closed:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[Result]) -> Result:
    found: Result = await anext(items, _END)
    return found


async def _close(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()

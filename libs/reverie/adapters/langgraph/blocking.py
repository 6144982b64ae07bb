"""Runs an adapter's coroutines for callers that await and for callers that block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from reverie.client import AsyncReverie, Reverie

T = TypeVar("T")


class SyncOrAsync:
    """Runs coroutines over a client: those of an `AsyncReverie` are awaited, those of a `Reverie`
    run in its thread, and so can be awaited or waited for.
    """

    def __init__(self, reverie: AsyncReverie | Reverie) -> None:
        self._blocking = reverie if isinstance(reverie, Reverie) else None
        self.client = reverie.asynchronous if isinstance(reverie, Reverie) else reverie

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, for code that awaits it."""
        if self._blocking is None:
            return await coroutine
        return await asyncio.to_thread(self._blocking.portal.run, coroutine)

    def run_blocking(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The same for code that waits. Raises `TypeError` over an `AsyncReverie`."""
        if self._blocking is None:
            coroutine.close()
        return self._check().portal.run(coroutine)

    async def iterate(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items, for code that awaits them."""
        while True:
            try:
                yield await self.run(_take(items))
            except StopAsyncIteration:
                return

    def iterate_blocking(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The same for code that waits. Raises `TypeError` over an `AsyncReverie`."""
        return self._check().portal.iterate(items)

    def _check(self) -> Reverie:
        if self._blocking is None:
            raise TypeError("this needs a Reverie: with an AsyncReverie, use the calls to await")
        return self._blocking


async def _take(items: AsyncIterator[T]) -> T:
    return await anext(items)

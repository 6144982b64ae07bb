"""Keeps an async resource open in its own event loop, paused between the tests that use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Event
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """What was opened, in a loop that stands still until somebody uses it.

    So it takes no time from tests of other things, and changes nothing that is the process's.
    """

    def __init__(self, made: T) -> None:
        self._made, self._over = made, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._resting, self._wanted = Event(), Event()

    async def until_over(self) -> None:
        """In its own loop: works when it is wanted, until it is let go."""
        self._rest()
        await self._over.wait()

    def _rest(self) -> None:
        self._resting.set()
        self._wanted.wait()
        self._wanted.clear()

    @contextmanager
    def used(self) -> Iterator[T]:
        """It works for as long as this lasts."""
        self._resting.wait()
        self._resting.clear()
        self._wanted.set()
        try:
            yield self._made
        finally:
            self._loop.call_soon_threadsafe(self._rest)
            self._resting.wait()

    def let_go(self) -> None:
        """Ends it."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._wanted.set()


@contextmanager
def held_beside(opened: AbstractAsyncContextManager[T]) -> Iterator[Beside[T]]:
    """Opens it in a loop and a thread of its own, whatever loop a test has."""
    ready: Future[Beside[T]] = Future()

    async def hold() -> None:
        async with opened as made:
            held = Beside(made)
            ready.set_result(held)
            await held.until_over()

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(asyncio.run, hold())
        either: list[Future[Any]] = [ready, ended]
        wait(either, return_when=FIRST_COMPLETED)
        if ended.done():
            ended.result()
        held = ready.result()
        try:
            yield held
        finally:
            held.let_go()
            ended.result()

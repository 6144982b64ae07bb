"""Keeps an async resource open in an event loop and a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from threading import Event
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class BackgroundResource(Generic[T]):
    """A resource in an event loop that is paused unless a test uses it.

    While paused it takes no time from other tests and changes nothing in the process.
    """

    def __init__(self, resource: T) -> None:
        self._resource, self._stopped = resource, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_paused, self._resume = Event(), Event()

    async def run_until_stopped(self) -> None:
        """Runs in the resource's own loop: paused between uses, until `stop`."""
        self._pause()
        await self._stopped.wait()

    def _pause(self) -> None:
        self._is_paused.set()
        self._resume.wait()
        self._resume.clear()

    @contextmanager
    def in_use(self) -> Iterator[T]:
        """The loop runs for as long as this lasts."""
        self._is_paused.wait()
        self._is_paused.clear()
        self._resume.set()
        try:
            yield self._resource
        finally:
            self._loop.call_soon_threadsafe(self._pause)
            self._is_paused.wait()

    def stop(self) -> None:
        """Closes the resource."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._resume.set()


@contextmanager
def open_in_background(
    opened: AbstractAsyncContextManager[T],
) -> Iterator[BackgroundResource[T]]:
    """Opens the resource in a loop and a thread of its own, independent of the test's loop."""
    ready: Future[BackgroundResource[T]] = Future()

    async def hold() -> None:
        async with opened as resource:
            background = BackgroundResource(resource)
            ready.set_result(background)
            await background.run_until_stopped()

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(asyncio.run, hold())
        either: list[Future[Any]] = [ready, ended]
        wait(either, return_when=FIRST_COMPLETED)
        if ended.done():
            ended.result()
        background = ready.result()
        try:
            yield background
        finally:
            background.stop()
            ended.result()


@asynccontextmanager
async def run_in_thread(opened: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Opens the resource in a loop and a thread of its own, while the caller's loop runs on."""
    ready: asyncio.Future[T] = asyncio.Future()
    mine, ends = asyncio.get_running_loop(), Future[None]()

    async def hold() -> None:
        async with opened as resource:
            mine.call_soon_threadsafe(ready.set_result, resource)
            await asyncio.wrap_future(ends)

    with ThreadPoolExecutor(1) as threads:
        ended = mine.run_in_executor(threads, asyncio.run, hold())
        either: list[asyncio.Future[Any]] = [ready, ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ready.cancel()
            await ended
        try:
            yield ready.result()
        finally:
            ends.set_result(None)
            await ended

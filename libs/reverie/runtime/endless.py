"""Answers that do not end by themselves: they end with the service, or with their client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar

from aiohttp import web

T = TypeVar("T")

STOPPING = web.AppKey("STOPPING", asyncio.Event)
LOOK_SECONDS = 1.0
"""How soon it is noticed that a client is gone."""


def prepare_to_stop(app: web.Application) -> None:
    """Makes the app tell its endless answers when it is shut down."""
    app[STOPPING] = asyncio.Event()
    app.on_shutdown.append(_stop)


async def _stop(app: web.Application) -> None:
    app[STOPPING].set()


async def until_over(
    request: web.Request, pieces: AsyncIterator[bytes]
) -> AsyncGenerator[bytes, None]:
    """The pieces until they end, the service stops or the client is gone."""
    stop = request.app[STOPPING]
    async with aclosing(ticking(pieces, LOOK_SECONDS, stop)) as ticks:
        async for piece in ticks:
            if stop.is_set() or request.transport is None or request.transport.is_closing():
                return
            if piece is not None:
                yield piece


async def ticking(
    source: AsyncIterator[T], seconds: float, alarm: asyncio.Event | None = None
) -> AsyncGenerator[T | None, None]:
    """What comes from `source`, and None each time nothing came for `seconds` or at the alarm."""
    ringing = asyncio.create_task((alarm or asyncio.Event()).wait())
    coming: asyncio.Task[T] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(_next(source))
            waits = {coming, ringing}
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                yield None
                continue
            found, coming = coming.result(), None
            yield found
    except StopAsyncIteration:
        return
    finally:
        await _cancel(ringing, coming)


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _cancel(*tasks: asyncio.Task[T] | asyncio.Task[bool] | None) -> None:
    """Waits until they are over: what they hold must be free before its owner goes on."""
    there = [task for task in tasks if task is not None]
    for task in there:
        task.cancel()
    await asyncio.wait(there)

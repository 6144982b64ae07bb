"""Request and response bodies that are streamed in chunks, and their end at shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TypeVar

from aiohttp import web

from reverie.domain.core.errors import MalformedInput, PayloadTooLarge
from reverie.runtime.http.exchange import IncomingRequest

T = TypeVar("T")

STOPPING = web.AppKey("STOPPING", asyncio.Event)
POLL_SECONDS = 1.0
"""Seconds between checks for a disconnected client."""


def register_shutdown_signal(app: web.Application) -> None:
    """Makes the app signal its endless answers when it is shut down."""
    app[STOPPING] = asyncio.Event()
    app.on_shutdown.append(_signal_shutdown)


async def _signal_shutdown(app: web.Application) -> None:
    app[STOPPING].set()


async def stream_until_stopped(
    request: web.Request, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yields the pieces until they end, the service stops or the client disconnects.

    Closes them.
    """
    stop = request.app[STOPPING]
    async with aclosing(iterate_with_ticks(chunks, POLL_SECONDS, stop)) as ticks:
        async for chunk in ticks:
            if stop.is_set() or request.transport is None or request.transport.is_closing():
                return
            if chunk is not None:
                yield chunk


async def iterate_with_ticks(
    source: AsyncGenerator[T, None], seconds: float, wake_event: asyncio.Event | None = None
) -> AsyncGenerator[T | None, None]:
    """Yields the items of `source`; and None after `seconds` without one or at the alarm.

    All of the source runs in one context, and is closed in it: it may hold a span open.
    """
    context = copy_context()
    wake_task = asyncio.create_task((wake_event or asyncio.Event()).wait())
    next_task: asyncio.Task[T] | None = None
    try:
        while True:
            next_task = next_task or asyncio.create_task(_next(source), context=context)
            tasks = {next_task, wake_task}
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not next_task.done():
                yield None
                continue
            item, next_task = next_task.result(), None
            yield item
    except StopAsyncIteration:
        return
    finally:
        await _cancel_and_wait(wake_task, next_task)
        await asyncio.create_task(_close(source), context=context)


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _close(source: AsyncGenerator[T, None]) -> None:
    await source.aclose()


async def _cancel_and_wait(*tasks: asyncio.Task[T] | asyncio.Task[bool] | None) -> None:
    """Waits until they are over: what they hold must be free before its owner goes on."""
    pending = [task for task in tasks if task is not None]
    for task in pending:
        task.cancel()
    await asyncio.wait(pending)


_SMALL_BODY_BYTES = 64 * 1024
_CONTENT_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})


@dataclass(frozen=True)
class StreamingReply:
    """An answer produced during sending. An error after the first piece breaks it off.

    An `endless` one ends when the service stops or its client disconnects.
    """

    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False


def check_content_encoding(request: IncomingRequest) -> None:
    """Raises `MalformedInput` if the content encoding of a body is not supported."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _CONTENT_ENCODINGS:
        raise MalformedInput(
            f"Content-Encoding {encoding[:40]!r} is not understood: send gzip, deflate or it plain"
        )


def check_body_size(request: IncomingRequest, limit: int, setting: str) -> None:
    """Raises `PayloadTooLarge` if the announced size of the body exceeds `limit` bytes."""
    size = request.content_length or 0
    if size > limit:
        raise PayloadTooLarge("body", size, limit, setting)


async def read_chunks(
    request: IncomingRequest, limit: int, setting: str
) -> AsyncGenerator[bytes, None]:
    """The chunks of the body; raises `PayloadTooLarge` once they exceed `limit` bytes."""
    check_content_encoding(request)
    check_body_size(request, limit, setting)
    size = 0
    async for chunk in request.chunks:
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge("body", size, limit, setting)
        yield chunk


async def read_body(request: IncomingRequest, limit: int, setting: str = "body_limit") -> bytes:
    """The whole body; raises `PayloadTooLarge` if it exceeds `limit` bytes."""
    return b"".join([chunk async for chunk in read_chunks(request, limit, setting)])


def has_small_body(request: IncomingRequest) -> bool:
    """Whether the body is known to fit into the buffer that the connection has anyway."""
    size = request.content_length
    return (
        size is not None
        and size <= _SMALL_BODY_BYTES
        and not (size and request.headers.get("Content-Encoding"))
    )

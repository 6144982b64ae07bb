"""Request and response bodies that are streamed in chunks, and their end at shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from aiohttp import ClientPayloadError, web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge

from reverie.domain.core.errors import MalformedInput, PayloadTooLarge

T = TypeVar("T")

STOPPING = web.AppKey("STOPPING", asyncio.Event)
POLL_SECONDS = 1.0
"""How soon it is noticed that a client is gone."""


def register_shutdown_signal(app: web.Application) -> None:
    """Makes the app tell its endless answers when it is shut down."""
    app[STOPPING] = asyncio.Event()
    app.on_shutdown.append(_signal_shutdown)


async def _signal_shutdown(app: web.Application) -> None:
    app[STOPPING].set()


async def stream_until_stopped(
    request: web.Request, chunks: AsyncIterator[bytes]
) -> AsyncGenerator[bytes, None]:
    """The pieces until they end, the service stops or the client is gone."""
    stop = request.app[STOPPING]
    async with aclosing(iterate_with_ticks(chunks, POLL_SECONDS, stop)) as ticks:
        async for chunk in ticks:
            if stop.is_set() or request.transport is None or request.transport.is_closing():
                return
            if chunk is not None:
                yield chunk


async def iterate_with_ticks(
    source: AsyncIterator[T], seconds: float, wake_event: asyncio.Event | None = None
) -> AsyncGenerator[T | None, None]:
    """What comes from `source`, and None each time nothing came for `seconds` or at the alarm."""
    wake_task = asyncio.create_task((wake_event or asyncio.Event()).wait())
    next_task: asyncio.Task[T] | None = None
    try:
        while True:
            next_task = next_task or asyncio.create_task(_next(source))
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


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _cancel_and_wait(*tasks: asyncio.Task[T] | asyncio.Task[bool] | None) -> None:
    """Waits until they are over: what they hold must be free before its owner goes on."""
    pending = [task for task in tasks if task is not None]
    for task in pending:
        task.cancel()
    await asyncio.wait(pending)


log = structlog.get_logger()

_SMALL_BODY_BYTES = 64 * 1024
_CONTENT_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})


@dataclass(frozen=True)
class StreamingReply:
    """An answer that is made while it is sent. What fails after the first piece breaks it off.

    An `endless` one ends when the service stops, and as soon as its client is gone.
    """

    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False


def check_content_encoding(request: web.Request) -> None:
    """Raises `MalformedInput` where a body is packed in a way that is not unpacked here."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _CONTENT_ENCODINGS:
        raise MalformedInput(
            f"Content-Encoding {encoding[:40]!r} is not understood: send gzip, deflate or it plain"
        )


def check_body_size(request: web.Request, limit: int, setting: str) -> None:
    """Raises `PayloadTooLarge` if the announced size of the body exceeds `limit` bytes."""
    size = request.content_length or 0
    if size > limit:
        raise PayloadTooLarge("body", size, limit, setting)


def has_small_body(request: web.Request) -> bool:
    """Whether the body is known to fit into the buffer that the connection has anyway."""
    if not request.body_exists:
        return True
    size = request.content_length
    return (
        size is not None
        and size <= _SMALL_BODY_BYTES
        and not request.headers.get("Content-Encoding")
    )


async def read_body(request: web.Request, limit: int, setting: str = "body_limit") -> bytes:
    """The whole body; raises `PayloadTooLarge` above `body_limit` bytes."""
    check_content_encoding(request)
    check_body_size(request, limit, setting)
    try:
        return await request.clone(client_max_size=limit).read()
    except HTTPRequestEntityTooLarge:
        raise PayloadTooLarge("body", limit + 1, limit, setting) from None
    except (web.RequestPayloadError, web.HTTPBadRequest):
        raise MalformedInput("the body cannot be read: its encoding or framing is broken") from None


async def read_chunks(request: web.Request, limit: int, setting: str) -> AsyncIterator[bytes]:
    """The body in pieces; raises `PayloadTooLarge` once it holds more than `limit` bytes."""
    check_content_encoding(request)
    check_body_size(request, limit, setting)
    size = 0
    try:
        async for chunk in request.content.iter_any():
            size += len(chunk)
            if size > limit:
                raise PayloadTooLarge("body", size, limit, setting)
            yield chunk
    except (web.RequestPayloadError, web.HTTPBadRequest, ClientPayloadError):
        raise MalformedInput("the body cannot be read: its encoding or framing is broken") from None


async def send_stream(
    request: web.Request, reply: StreamingReply, seconds: float
) -> web.StreamResponse:
    """Sends the pieces; a client that takes none for `seconds` is given up."""
    chunks = reply.chunks.__aiter__()
    first = await anext(chunks, b"")
    rest = stream_until_stopped(request, chunks) if reply.endless else chunks
    response = web.StreamResponse(headers=dict(reply.headers))
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            await _write_chunk(response, first, seconds)
            async for chunk in rest:
                await _write_chunk(response, chunk, seconds)
        await response.write_eof()
    except Exception as error:
        log.warning("stream_broken", reason=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    finally:
        await _close_generator(chunks)
    return response


async def _write_chunk(response: web.StreamResponse, chunk: bytes, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await response.write(chunk)


async def _close_generator(chunks: AsyncIterator[bytes]) -> None:
    """Ends a generator that was left early, and with it whatever it holds open."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()

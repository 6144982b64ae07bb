"""Serves the requests of HTTP connections: aiohttp's requests and responses as plain values."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import structlog
from aiohttp import ClientPayloadError, web
from aiohttp.typedefs import Handler, Middleware

from reverie.domain.core.errors import MalformedInput
from reverie.runtime.http.dispatch import Dispatcher, HeaderCheck
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.streaming import stream_until_stopped

log = structlog.get_logger()

_MIN_COMPRESSED_BYTES = 1024
_COMPRESS_IN_THREAD_BYTES = 256 * 1024
"""Larger bodies are compressed in a thread, so that other requests need not wait."""
_COMPRESSED = frozenset({"gzip", "deflate"})
_PIECE_BYTES = 64 * 1024
_ANY_WBITS = 32 + zlib.MAX_WBITS
_GZIP_WBITS = 16 + zlib.MAX_WBITS


def serve_connections(
    dispatcher: Dispatcher, check_headers: HeaderCheck, write_timeout: float
) -> Middleware:
    """Builds a middleware that passes every request of an application to the dispatcher.

    A client that reads no chunk of a stream for `write_timeout` seconds is disconnected.
    """

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        incoming = IncomingRequest(
            request.method,
            request.rel_url,
            request.headers,
            _iterate_body(request),
            request.content_length if request.body_exists else 0,
            request.remote or "",
        )
        async with dispatcher.respond(incoming, check_headers) as response:
            if response.chunks is None:
                return await _send_whole(request, response)
            return await _send_chunks(request, response, response.chunks, write_timeout)

    return serve


async def unrouted(_: web.Request) -> web.StreamResponse:
    """Stands for every path: the middleware answers before it."""
    raise web.HTTPNotFound


async def defer_continue(_: web.Request) -> None:
    """Sends no `100 Continue` yet: a client may send its body once somebody reads it."""


async def _iterate_body(request: web.Request) -> AsyncIterator[bytes]:
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The answer itself has not begun.
        request.writer.output_size = 0
    chunks = request.content.iter_any()
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    try:
        async for chunk in _decompress(chunks) if encoding in _COMPRESSED else chunks:
            yield chunk
    except (web.RequestPayloadError, web.HTTPBadRequest, ClientPayloadError, zlib.error):
        raise MalformedInput("the body cannot be read: its encoding or framing is broken") from None
    except ConnectionResetError:
        # The call has failed like any other, and is audited.
        raise MalformedInput("the body ended early: the client disconnected") from None


async def _decompress(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The decompressed body in small pieces, no faster than somebody reads them.

    aiohttp would also decompress a body that nobody reads. Raises `zlib.error`.
    """
    decompressor = None
    async for chunk in chunks:
        if decompressor is None:
            # `deflate` means zlib's format, but some clients send it without the header.
            is_raw = chunk[:2] != b"\x1f\x8b" and chunk[0] & 0x0F != zlib.DEFLATED
            decompressor = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else _ANY_WBITS)
        rest = chunk
        while rest:
            yield decompressor.decompress(rest, _PIECE_BYTES)
            rest = decompressor.unconsumed_tail
            await asyncio.sleep(0)
        if decompressor.eof and decompressor.unused_data:
            raise zlib.error("data after the end")
    while decompressor is not None and (piece := decompressor.decompress(b"", _PIECE_BYTES)):
        yield piece
    if decompressor is not None and not decompressor.eof:
        raise zlib.error("cut off")


async def _send_whole(request: web.Request, response: OutgoingResponse) -> web.Response:
    body = response.body
    if len(body) > _MIN_COMPRESSED_BYTES and "Content-Encoding" not in response.headers:
        response.headers["Vary"] = "Accept-Encoding"
        if _accepts_gzip(request):
            response.headers["Content-Encoding"] = "gzip"
            arguments = (body, zlib.Z_BEST_SPEED, _GZIP_WBITS)
            if len(body) > _COMPRESS_IN_THREAD_BYTES:
                body = await asyncio.to_thread(zlib.compress, *arguments)
            else:
                body = zlib.compress(*arguments)
    sent = web.Response(status=response.status, body=body, headers=response.headers)
    try:
        await sent.prepare(request)
        await sent.write_eof()
    except ConnectionError:
        log.debug("client_disconnected")
    return sent


async def _send_chunks(
    request: web.Request,
    response: OutgoingResponse,
    chunks: AsyncGenerator[bytes, None],
    write_timeout: float,
) -> web.StreamResponse:
    """Once the headers are sent, an error can only break the connection off."""
    sent = web.StreamResponse(status=response.status, headers=response.headers)
    try:
        async with aclosing(chunks):
            await sent.prepare(request)
            sources = stream_until_stopped(request, chunks) if response.endless else chunks
            async with aclosing(sources):
                async for chunk in sources:
                    if request.method == "HEAD":
                        break
                    async with asyncio.timeout(write_timeout):
                        await sent.write(chunk)
            await sent.write_eof()
    except ConnectionError:
        log.debug("client_disconnected")
    except Exception as error:
        log.warning("stream_interrupted", reason=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    return sent


def _accepts_gzip(request: web.Request) -> bool:
    """Whether the client accepts gzip with a weight above zero."""
    for encoding in request.headers.get("Accept-Encoding", "").lower().split(","):
        name, _, weight = encoding.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False

"""Bodies too long to be held whole: sent piece by piece, taken piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import structlog
from aiohttp import ClientPayloadError, web

from reverie.domain.errors import Malformed, TooLarge
from reverie.runtime.endless import until_over

log = structlog.get_logger()

_PACKINGS = frozenset({"", "identity", "gzip", "deflate"})


@dataclass(frozen=True)
class Streamed:
    """An answer that is made while it is sent. What fails after the first piece breaks it off.

    An `endless` one ends when the service stops, and as soon as its client is gone.
    """

    pieces: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False


def check_packing(request: web.Request) -> None:
    """Raises `Malformed` where a body is packed in a way that is not unpacked here."""
    packed = request.headers.get("Content-Encoding", "").strip().lower()
    if packed not in _PACKINGS:
        raise Malformed(
            f"Content-Encoding {packed[:40]!r} is not understood: send gzip, deflate or it plain"
        )


async def taken(request: web.Request, limit: int, setting: str) -> AsyncIterator[bytes]:
    """The body in pieces; raises `TooLarge` once it holds more than `limit` bytes."""
    check_packing(request)
    size = request.content_length or 0
    if size > limit:
        raise TooLarge("body", size, limit, setting)
    size = 0
    try:
        async for piece in request.content.iter_any():
            size += len(piece)
            if size > limit:
                raise TooLarge("body", size, limit, setting)
            yield piece
    except (web.RequestPayloadError, web.HTTPBadRequest, ClientPayloadError):
        raise Malformed("the body cannot be read: its encoding or framing is broken") from None


async def send(request: web.Request, reply: Streamed, seconds: float) -> web.StreamResponse:
    """Sends the pieces; a client that takes none for `seconds` is given up."""
    pieces = reply.pieces.__aiter__()
    first = await anext(pieces, b"")
    rest = until_over(request, pieces) if reply.endless else pieces
    response = web.StreamResponse(headers=dict(reply.headers))
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            await _write(response, first, seconds)
            async for piece in rest:
                await _write(response, piece, seconds)
        await response.write_eof()
    except Exception as error:
        log.warning("stream_broken", reason=type(error).__name__)
        if request.transport is not None:
            request.transport.abort()
    finally:
        await _close(pieces)
    return response


async def _write(response: web.StreamResponse, piece: bytes, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await response.write(piece)


async def _close(pieces: AsyncIterator[bytes]) -> None:
    """Ends a generator that was left early, and with it whatever it holds open."""
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()

"""Server-sent events that tell a page that what it shows has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from multidict import CIMultiDict

from reverie.contracts.problems import build_problem
from reverie.mcp.rest_calls import RestCallError
from reverie.runtime.http.exchange import OutgoingResponse
from reverie.store.platform.console_sessions import ConsoleToken
from reverie_services.console.page_request import PageRequest
from reverie_services.console.requests import SECURITY_HEADERS

SignInCheck = Callable[[], Awaitable[bool]]
"""Whether a sign-in still lasts."""
POLL_SECONDS = 10.0
"""Seconds between two checks. A page is loaded again at most this often."""


async def _read_recalls(request: PageRequest) -> Any:
    return await request.get("/v1/traces", limit=1)


async def _read_dreams(request: PageRequest) -> Any:
    return await request.get("/v1/dreams", limit=5), await request.get("/v1/dream", limit=50)


async def _read_all(request: PageRequest) -> Any:
    return (
        await _read_recalls(request),
        await _read_dreams(request),
        await request.get("/v1/memories", limit=1),
    )


MAX_STREAMS, MAX_STREAMS_OF_KEY = 500, 20
"""The most streams of a gateway and of one key: each makes calls every ten seconds."""


@dataclass(eq=False)
class LiveStream:
    """An open stream of a sign-in; `ended` is set when the sign-in ends."""

    key: str
    token: ConsoleToken
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> None:
        """Waits that long, or until the sign-in ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()


class LiveStreams:
    """The open streams of a gateway."""

    def __init__(self) -> None:
        self._open: set[LiveStream] = set()

    def check(self, key: str) -> None:
        """Raises `RestCallError` if the key, or all keys together, have too many streams."""
        of_key = sum(stream.key == key for stream in self._open)
        if of_key >= MAX_STREAMS_OF_KEY or len(self._open) >= MAX_STREAMS:
            raise RestCallError(build_problem("too_many", "too many pages are open"))

    @contextmanager
    def register(self, stream: LiveStream) -> Iterator[None]:
        """Counts a stream while the context is open."""
        self._open.add(stream)
        try:
            yield
        finally:
            self._open.remove(stream)

    def end(self, token: ConsoleToken) -> None:
        """Ends the streams of a sign-in."""
        for stream in self._open:
            if stream.token == token:
                stream.ended.set()


LOOKS: Mapping[str, Callable[[PageRequest], Awaitable[Any]]] = {
    "overview": _read_all,
    "recalls": _read_recalls,
    "dreams": _read_dreams,
}
"""By page: the fewest calls that show whether its content changed."""


async def stream_changes(
    request: PageRequest,
    name: str,
    streams: LiveStreams,
    stream: LiveStream,
    is_signed_in: SignInCheck,
) -> OutgoingResponse:
    """A stream with an event whenever the content of the named page changed."""
    if name not in LOOKS:
        raise RestCallError(build_problem("not_found", "no such stream"))
    streams.check(stream.key)
    first = await _fingerprint(request, name)

    async def iterate_changes() -> AsyncGenerator[bytes, None]:
        """Ends with the sign-in, and once a call is refused: then the key was revoked."""
        last = first
        with streams.register(stream):
            yield b"retry: 5000\nevent: ready\ndata: \n\n"
            while True:
                await stream.wait(POLL_SECONDS)
                # Another gateway may have ended the sign-in.
                if stream.ended.is_set() or not await is_signed_in():
                    return
                try:
                    current = await _fingerprint(request, name)
                except RestCallError:
                    return
                yield b": still here\n\n" if current == last else b"event: changed\ndata: \n\n"
                last = current

    headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    return OutgoingResponse(200, CIMultiDict(headers), chunks=iterate_changes(), endless=True)


async def _fingerprint(request: PageRequest, name: str) -> str:
    seen = await LOOKS[name](request)
    return sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()

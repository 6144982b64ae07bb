"""Server-sent events that tell a page that what it shows has changed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from multidict import CIMultiDict

from reverie.contracts.problems import build_problem
from reverie.mcp.rest_calls import RestCallError
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.requests import SECURITY_HEADERS
from reverie_services.console.visit import Visit

POLL_SECONDS = 10.0
"""Seconds between two looks. A page is loaded again at most this often."""


async def _look_at_recalls(visit: Visit) -> Any:
    return await visit.get("/v1/traces", limit=1)


async def _look_at_dreams(visit: Visit) -> Any:
    return await visit.get("/v1/dreams", limit=5), await visit.get("/v1/dream", limit=50)


async def _look_at_all(visit: Visit) -> Any:
    return (
        await _look_at_recalls(visit),
        await _look_at_dreams(visit),
        await visit.get("/v1/memories", limit=1),
    )


MAX_STREAMS, MAX_STREAMS_OF_KEY = 500, 20
"""Streams of a gateway, and of one key, at most: each of them asks every ten seconds."""


class LiveStreams:
    """The open streams of a gateway, by key."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def check(self, key: str) -> None:
        """Raises `RestCallError` if the key, or all keys together, hold too many."""
        if self._open[key] >= MAX_STREAMS_OF_KEY or self._open.total() >= MAX_STREAMS:
            raise RestCallError(build_problem("too_many", "too many pages are open"))

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Counts a stream for as long as this lasts."""
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            self._open += Counter()


LOOKS: Mapping[str, Callable[[Visit], Awaitable[Any]]] = {
    "overview": _look_at_all,
    "recalls": _look_at_recalls,
    "dreams": _look_at_dreams,
}
"""By page: what it would show, in as few calls as tell a change."""


async def stream_changes(visit: Visit, name: str, streams: LiveStreams) -> OutgoingResponse:
    """A stream with an event whenever the page of that name has something new to show."""
    if name not in LOOKS:
        raise RestCallError(build_problem("not_found", "no such stream"))
    streams.check(visit.principal.key_id)
    first = await _fingerprint(visit, name)
    headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    return OutgoingResponse(
        200,
        CIMultiDict(headers),
        chunks=_iterate_changes(visit, name, first, streams),
        endless=True,
    )


async def _iterate_changes(
    visit: Visit, name: str, last: str, streams: LiveStreams
) -> AsyncGenerator[bytes, None]:
    """Ends once a call is refused: then the key was revoked, and the page asks to sign in."""
    with streams.hold(visit.principal.key_id):
        yield b"retry: 5000\nevent: ready\ndata: \n\n"
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                current = await _fingerprint(visit, name)
            except RestCallError:
                return
            yield b": still here\n\n" if current == last else b"event: changed\ndata: \n\n"
            last = current


async def _fingerprint(visit: Visit, name: str) -> str:
    seen = await LOOKS[name](visit)
    return sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()

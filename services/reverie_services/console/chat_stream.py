"""Passes the events of a chat from the gateway's stream on to the page."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import monotonic
from urllib.parse import quote

from multidict import CIMultiDict

from reverie.contracts.events import is_position
from reverie.contracts.problems import build_problem
from reverie.mcp.rest_calls import RestCallError, encode_query
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.live import POLL_SECONDS, LiveStream, LiveStreams, SignInCheck
from reverie_services.console.page_request import PageRequest
from reverie_services.console.requests import SECURITY_HEADERS


async def stream_chat(
    request: PageRequest,
    last_event: str,
    streams: LiveStreams,
    stream: LiveStream,
    is_signed_in: SignInCheck,
) -> OutgoingResponse:
    """The events of a chat after a position; the browser names the last one that it saw."""
    group = request.ask("group") or ""
    # A missing right is answered here, and not within a stream.
    await request.get(f"/v1/groups/{quote(group, safe='')}/messages", limit=1)
    streams.check(stream.key)
    after = int(last_event) if is_position(last_event) else request.position("from")
    headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
    path = f"/v1/groups/{quote(group, safe='')}/events{encode_query({'after': after})}"

    async def iterate_events() -> AsyncGenerator[bytes, None]:
        """Passes nothing on after the sign-in ended."""
        checked = monotonic()
        with streams.register(stream):
            rest = request.rest
            async with rest.dispatcher.open("GET", path, rest.headers) as response:
                if response.chunks is None:
                    raise RestCallError(build_problem("unavailable", "the engine does not answer"))
                async for chunk in response.chunks:
                    # Another gateway may have ended the sign-in.
                    is_due = monotonic() - checked > POLL_SECONDS
                    if stream.ended.is_set() or (is_due and not await is_signed_in()):
                        return
                    checked = monotonic() if is_due else checked
                    yield chunk

    return OutgoingResponse(200, CIMultiDict(headers), chunks=iterate_events(), endless=True)

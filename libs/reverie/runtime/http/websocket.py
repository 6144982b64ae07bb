"""Sends a server-sent event stream over a WebSocket, one JSON message per event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from reverie.contracts.event_stream import ServerSentEvent, read_server_sent_events
from reverie.contracts.problems import problem_from_error
from reverie.domain.core.consistency import StoredReply
from reverie.domain.core.errors import MalformedInput, ReverieError

log = structlog.get_logger()

WEBSOCKET_SUFFIX = "/ws"
WEBSOCKET_PROTOCOL = "reverie"
HEARTBEAT_SECONDS = 20.0
"""So often a client is asked for a sign of life."""
_MAX_MESSAGE_BYTES = 64 * 1024

RequestedParams = Mapping[str, list[str]]
"""Query parameters that a message named."""
EventStreamOpener = Callable[
    [RequestedParams | None], AbstractAsyncContextManager[AsyncIterator[bytes]]
]
"""The stream as it was asked for; None: in the address."""


class UpstreamRefusal(Exception):
    """Another service refused to open the stream, with this answer."""

    def __init__(self, reply: StoredReply) -> None:
        super().__init__(f"refused with {reply.status}")
        self.reply = reply


def check_upgrade(request: web.Request) -> None:
    """Raises `MalformedInput` where the request does not ask for a WebSocket."""
    if not web.WebSocketResponse().can_prepare(request).ok:
        path = request.path.removesuffix(WEBSOCKET_SUFFIX)
        raise MalformedInput(
            "this call is a WebSocket: ask with `Connection: Upgrade`, `Upgrade: websocket` and "
            f"the rest of the handshake, or read {path} instead"
        )


async def serve_websocket(
    request: web.Request, open_stream: EventStreamOpener, seconds: float
) -> web.StreamResponse:
    """Tells the events of the stream until it, the service or the client ends.

    What is refused before the socket is open is answered as by any call; later it is told in a
    message, and the socket is closed. A client that takes nothing for `seconds` is given up.
    """
    check_upgrade(request)
    session = _WebSocketSession(request, seconds)
    params: RequestedParams | None = None
    try:
        while True:
            async with open_stream(params) as chunks:
                params = await session.send_events(read_server_sent_events(_split_lines(chunks)))
            if params is None:
                return await session.close(WSCloseCode.GOING_AWAY)
    except (ReverieError, UpstreamRefusal) as error:
        if not session.socket.prepared:
            return _http_response(error)
        await session.send_message({"event": "problem", "data": _problem_document(error)})
        return await session.close(WSCloseCode.POLICY_VIOLATION)


class _WebSocketSession:
    """A socket, opened once the first event is there, and the place of the last that was told."""

    def __init__(self, request: web.Request, seconds: float) -> None:
        self.socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS,
            max_msg_size=_MAX_MESSAGE_BYTES,
            protocols=(WEBSOCKET_PROTOCOL,),
        )
        self._request = request
        self._seconds = seconds
        self._last_event_id = ""

    async def send_events(self, events: AsyncIterator[ServerSentEvent]) -> RequestedParams | None:
        """Tells events until the client asks for others, which it gives; None at the end."""
        first = await anext(events, None)
        if first is None:
            return None
        if not self.socket.prepared:
            await self.socket.prepare(self._request)
        sender = asyncio.create_task(self._pass_on(first, events))
        receiver = asyncio.create_task(self.socket.receive())
        try:
            done, _ = await asyncio.wait({sender, receiver}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel_tasks(sender, receiver)
        if receiver not in done:
            return None
        params = _parse_params(receiver.result())
        return params and {"after": [self._last_event_id], **params}

    async def send_message(self, message: Mapping[str, Any]) -> None:
        """One message; a client that is gone hears nothing."""
        try:
            async with asyncio.timeout(self._seconds):
                await self.socket.send_str(json.dumps(message))
        except (ConnectionError, TimeoutError) as error:
            log.warning("stream_broken", reason=type(error).__name__)

    async def close(self, code: WSCloseCode) -> web.StreamResponse:
        """Closes the socket, where it is not closed already."""
        if self.socket.prepared:
            await self.socket.close(code=code)
        return self.socket

    async def _pass_on(self, first: ServerSentEvent, rest: AsyncIterator[ServerSentEvent]) -> None:
        await self._send_event(first)
        async for event in rest:
            await self._send_event(event)

    async def _send_event(self, event: ServerSentEvent) -> None:
        name, data = (event.event, json.loads(event.data)) if event.data else ("alive", {})
        async with asyncio.timeout(self._seconds):
            await self.socket.send_str(json.dumps({"id": event.id, "event": name, "data": data}))
        self._last_event_id = event.id


def _parse_params(message: WSMessage) -> RequestedParams | None:
    """What a message asks for; None where it is the end. Raises `MalformedInput`."""
    if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
        return None
    try:
        params = json.loads(message.data)
    except ValueError:
        params = None
    if not isinstance(params, dict):
        raise MalformedInput('send one JSON object, as {"kind": ["task"], "event": ["remembered"]}')
    return {name: _text_list(name, value) for name, value in params.items() if value is not None}


def _text_list(name: str, value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        raise MalformedInput(f"{name[:40]!r} must be text, or a list of texts")
    return texts


async def _cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("stream_broken", reason=type(error).__name__)


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, each once it is whole."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"


def _http_response(error: ReverieError | UpstreamRefusal) -> web.Response:
    if isinstance(error, ReverieError):
        raise error
    reply = error.reply
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


def _problem_document(error: ReverieError | UpstreamRefusal) -> dict[str, Any]:
    """The problem document, as the body of a refused call would be."""
    if isinstance(error, ReverieError):
        return problem_from_error(error).model_dump(exclude_none=True)
    document: dict[str, Any] = json.loads(error.reply.body)
    return document

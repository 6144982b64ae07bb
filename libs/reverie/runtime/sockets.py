"""WebSocket: a stream of server-sent events, each as one message of JSON.

What the client sends replaces what it asked for in the address: `{"kind": ["task"]}`. The stream
goes on where it was, or at the place `after`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from reverie.contracts.problems import problem_of
from reverie.contracts.sse import Sent, sent_in
from reverie.domain.errors import Malformed, ReverieError
from reverie.domain.idempotency import StoredReply

log = structlog.get_logger()

PATH_END = "/ws"
PROTOCOL = "reverie"
ALIVE_SECONDS = 20.0
"""So often a client is asked for a sign of life."""
_LONGEST = 64 * 1024

Asked = Mapping[str, list[str]]
"""Query parameters that a message named."""
Opened = Callable[[Asked | None], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""The stream as it was asked for; None: in the address."""


class Refused(Exception):
    """Another service refused to open the stream, with this answer."""

    def __init__(self, reply: StoredReply) -> None:
        super().__init__(f"refused with {reply.status}")
        self.reply = reply


def check_upgrade(request: web.Request) -> None:
    """Raises `Malformed` where the request does not ask for a WebSocket."""
    if not web.WebSocketResponse().can_prepare(request).ok:
        raise Malformed(
            "this call is a WebSocket: ask with `Connection: Upgrade`, `Upgrade: websocket` and "
            f"the rest of the handshake, or read {request.path.removesuffix(PATH_END)} instead"
        )


async def speak(request: web.Request, opened: Opened, seconds: float) -> web.StreamResponse:
    """Tells the events of the stream until it, the service or the client ends.

    What is refused before the socket is open is answered as by any call; later it is told in a
    message, and the socket is closed. A client that takes nothing for `seconds` is given up.
    """
    check_upgrade(request)
    talk = _Talk(request, seconds)
    asked: Asked | None = None
    try:
        while True:
            async with opened(asked) as pieces:
                asked = await talk.tell(sent_in(_lines(pieces)))
            if asked is None:
                return await talk.end(WSCloseCode.GOING_AWAY)
    except (ReverieError, Refused) as error:
        if not talk.socket.prepared:
            return _plain(error)
        await talk.say({"event": "problem", "data": _document(error)})
        return await talk.end(WSCloseCode.POLICY_VIOLATION)


class _Talk:
    """A socket, opened once the first event is there, and the place of the last that was told."""

    def __init__(self, request: web.Request, seconds: float) -> None:
        self.socket = web.WebSocketResponse(
            heartbeat=ALIVE_SECONDS, max_msg_size=_LONGEST, protocols=(PROTOCOL,)
        )
        self._request = request
        self._seconds = seconds
        self._place = ""

    async def tell(self, events: AsyncIterator[Sent]) -> Asked | None:
        """Tells events until the client asks for others, which it gives; None at the end."""
        first = await anext(events, None)
        if first is None:
            return None
        if not self.socket.prepared:
            await self.socket.prepare(self._request)
        telling = asyncio.create_task(self._pass_on(first, events))
        hearing = asyncio.create_task(self.socket.receive())
        try:
            done, _ = await asyncio.wait({telling, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _stop(telling, hearing)
        if hearing not in done:
            return None
        asked = _asked(hearing.result())
        return asked and {"after": [self._place], **asked}

    async def say(self, message: Mapping[str, Any]) -> None:
        """One message; a client that is gone hears nothing."""
        try:
            async with asyncio.timeout(self._seconds):
                await self.socket.send_str(json.dumps(message))
        except (ConnectionError, TimeoutError) as error:
            log.warning("stream_broken", reason=type(error).__name__)

    async def end(self, code: WSCloseCode) -> web.StreamResponse:
        """Closes the socket, where it is not closed already."""
        if self.socket.prepared:
            await self.socket.close(code=code)
        return self.socket

    async def _pass_on(self, first: Sent, rest: AsyncIterator[Sent]) -> None:
        await self._send(first)
        async for event in rest:
            await self._send(event)

    async def _send(self, one: Sent) -> None:
        name, data = (one.event, json.loads(one.data)) if one.data else ("alive", {})
        async with asyncio.timeout(self._seconds):
            await self.socket.send_str(json.dumps({"id": one.id, "event": name, "data": data}))
        self._place = one.id


def _asked(message: WSMessage) -> Asked | None:
    """What a message asks for; None where it is the end. Raises `Malformed`."""
    if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
        return None
    try:
        given = json.loads(message.data)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Malformed('send one JSON object, as {"kind": ["task"], "event": ["remembered"]}')
    return {name: _texts(name, value) for name, value in given.items() if value is not None}


def _texts(name: str, value: object) -> list[str]:
    many = value if isinstance(value, list) else [value]
    texts = [one for one in many if isinstance(one, str)]
    if len(texts) < len(many):
        raise Malformed(f"{name[:40]!r} must be text, or a list of texts")
    return texts


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("stream_broken", reason=type(error).__name__)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, each once it is whole."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"


def _plain(error: ReverieError | Refused) -> web.Response:
    if isinstance(error, ReverieError):
        raise error
    reply = error.reply
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


def _document(error: ReverieError | Refused) -> dict[str, Any]:
    """The problem document, as the body of a refused call would be."""
    if isinstance(error, ReverieError):
        return problem_of(error).model_dump(exclude_none=True)
    found: dict[str, Any] = json.loads(error.reply.body)
    return found

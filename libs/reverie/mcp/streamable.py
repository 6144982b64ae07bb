"""Streamable HTTP without a web server: a request goes in, its one JSON answer comes out.

Nothing is kept between two requests, in either era of the protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from reverie.domain.redaction import redact
from reverie.mcp.door import Around, Door
from reverie.mcp.rest import Rest
from reverie.mcp.server import build

Profile = Literal["full", "minimal"]
PROFILES: tuple[Profile, ...] = ("full", "minimal")

_SENT_BACK = frozenset({"content-type", "allow"})


@dataclass
class Said:
    """What is answered."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class Streamable:
    """A server for each profile. `rest` and `project` are asked within each request's context;
    `around` goes around each call of a tool."""

    def __init__(self, rest: Rest, project: Callable[[], str | None], around: Around) -> None:
        self._rest = rest
        self._project = project
        self._around = around
        self._managers: dict[Profile, StreamableHTTPSessionManager] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answers while it is open; it is entered and left by one task."""
        async with AsyncExitStack() as stack:
            for profile in PROFILES:
                door = Door(lambda _: self._rest, profile, lambda _: self._project(), self._around)
                server = build(partial(_same, door))
                made = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
                await stack.enter_async_context(made.run())
                self._managers[profile] = made
            yield

    async def answer(self, profile: Profile, headers: Mapping[str, str], body: bytes) -> Said:
        """One message of the protocol, answered."""
        exchange = _Exchange(body)
        manager = self._managers[profile]
        await manager.handle_request(_scope(headers), exchange.receive, exchange.send)
        said = exchange.said
        if said.status >= 400:
            # What is wrong with a message is told with the message.
            said.body = bytearray(redact(said.body.decode("utf-8", "replace")).text.encode())
        return said


def _same(door: Door) -> Door:
    return door


def _scope(headers: Mapping[str, str]) -> dict[str, Any]:
    """A request without its body, as ASGI has it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in headers.items()
        ],
    }


class _Exchange:
    """The two ends of ASGI for one request."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.said = Said()

    async def receive(self) -> dict[str, Any]:
        """The body, once; then nothing more comes."""
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Takes a piece of the answer."""
        if message["type"] != "http.response.start":
            self.said.body += message.get("body", b"")
            return
        named = {k.decode("latin-1"): v.decode("latin-1") for k, v in message["headers"]}
        self.said.status = message["status"]
        self.said.headers = {k: v for k, v in named.items() if k.lower() in _SENT_BACK}

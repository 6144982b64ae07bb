"""Serves MCP over streamable HTTP, without sessions: one request in, one response out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from reverie.domain.redaction.redactor import redact
from reverie.mcp.handlers import CallWrapper, McpHandlers
from reverie.mcp.rest_calls import RestClient
from reverie.mcp.server import build_server
from reverie.mcp.tool_definition import ToolProfile

PROFILES: tuple[ToolProfile, ...] = ("full", "minimal")

_RETURNED_HEADERS = frozenset({"content-type", "allow"})


@dataclass
class McpHttpResponse:
    """The HTTP response to one message."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class StreamableHttp:
    """An MCP server for each profile.

    `rest` and `get_project` are called in the context of each request. `wrap_call` wraps each call
    of a tool. `knows_user`: whether the request names its user.
    """

    def __init__(
        self,
        rest: RestClient,
        get_project: Callable[[], str | None],
        wrap_call: CallWrapper,
        knows_user: Callable[[], bool],
    ) -> None:
        self._rest = rest
        self._get_project = get_project
        self._wrap_call = wrap_call
        self._knows_user = knows_user
        self._managers: dict[ToolProfile, StreamableHTTPSessionManager] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serves while it is open. One task must enter and leave it."""
        async with AsyncExitStack() as stack:
            for profile in PROFILES:
                create_handlers = partial(
                    McpHandlers,
                    lambda _: self._rest,
                    profile,
                    lambda _: self._get_project(),
                    self._wrap_call,
                    lambda _: self._knows_user(),
                )
                server = build_server(create_handlers)
                manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
                await stack.enter_async_context(manager.run())
                self._managers[profile] = manager
            yield

    async def handle_message(
        self, profile: ToolProfile, headers: Mapping[str, str], body: bytes
    ) -> McpHttpResponse:
        """The response to one message of the protocol."""
        exchange = _AsgiExchange(body)
        manager = self._managers[profile]
        await manager.handle_request(_asgi_scope(headers), exchange.receive, exchange.send)
        response = exchange.response
        if response.status >= 400:
            # Error texts quote the message.
            response.body = bytearray(
                redact(response.body.decode("utf-8", "replace")).text.encode()
            )
        return response


def _asgi_scope(headers: Mapping[str, str]) -> dict[str, Any]:
    """The ASGI scope of a request."""
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


class _AsgiExchange:
    """The ASGI callables of one request."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.response = McpHttpResponse()

    async def receive(self) -> dict[str, Any]:
        """The body once; after that it waits forever."""
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Takes one ASGI message of the response."""
        if message["type"] != "http.response.start":
            self.response.body += message.get("body", b"")
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in message["headers"]}
        self.response.status = message["status"]
        self.response.headers = {k: v for k, v in headers.items() if k.lower() in _RETURNED_HEADERS}

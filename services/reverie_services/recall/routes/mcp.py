"""Route for the Model Context Protocol over streamable HTTP, without sessions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from reverie.contracts.base import Name
from reverie.contracts.headers import USER_HEADER
from reverie.mcp.rest_calls import RestCallError, RestQuery
from reverie.mcp.tool_definition import ToolProfile
from reverie.runtime.http.calls import JSON_MEDIA_TYPE, Call, Reply
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie.runtime.observability.call_metrics import CallMetrics
from reverie_services.in_process_rest import InProcessRestClient

if TYPE_CHECKING:
    from reverie.mcp.streamable_http import StreamableHttp

_FORWARDED = ("Authorization", "User-Agent", USER_HEADER)


class McpQuery(QueryParams):
    """`profile` selects the tools. `project` is the default project of calls that name none."""

    profile: ToolProfile = "full"
    project: Name | None = None


@dataclass(frozen=True)
class _McpCaller:
    """The client of a message."""

    dispatcher: Dispatcher
    headers: Mapping[str, str]
    project: str | None
    idempotency_key: str | None
    write_numbers: Iterator[int] = field(default_factory=lambda: count(1))


_CALLER: ContextVar[_McpCaller] = ContextVar("mcp_caller")


def build_mcp_routes(gateway: McpGateway, body_limit: int) -> list[Route]:
    """The route of the protocol."""
    return [
        Route(
            "POST",
            "/mcp",
            gateway.handle_message,
            query=McpQuery,
            streaming=True,
            request_media_types=(JSON_MEDIA_TYPE,),
            response_examples={JSON_MEDIA_TYPE: '{"jsonrpc": "2.0", "id": 1, "result": {}}'},
            stream_limit=body_limit,
            delegates=True,
            summary="The Model Context Protocol, streamable HTTP",
        ),
    ]


class McpGateway:
    """The MCP server of the gateway. Its tools make REST calls within the process.

    The server starts with the first message: the SDK takes 22 MB, and many homes never use it.
    """

    def __init__(self, request_timeout: float, call_metrics: CallMetrics) -> None:
        self._request_timeout = request_timeout
        self._call_metrics = call_metrics
        self._requested = asyncio.Event()
        self._ready = asyncio.Event()
        self._mcp_server: StreamableHttp | None = None

    async def run(self) -> None:
        """Serves from the first message on until it is cancelled."""
        await self._requested.wait()
        module = await asyncio.to_thread(import_module, "reverie.mcp.streamable_http")
        server: StreamableHttp = module.StreamableHttp(
            _call_rest,
            lambda: _CALLER.get().project,
            self._observe_tool,
            lambda: USER_HEADER in _CALLER.get().headers,
        )
        async with server.run():
            self._mcp_server = server
            self._ready.set()
            try:
                await asyncio.Event().wait()
            finally:
                self._ready.clear()

    async def handle_message(self, call: Call[None, McpQuery]) -> Reply:
        """`POST /mcp`: one message of the protocol, one JSON response."""
        assert call.stream is not None
        assert call.dispatcher is not None
        async with asyncio.timeout(self._request_timeout):
            body = b"".join([chunk async for chunk in call.stream])
            self._requested.set()
            await self._ready.wait()
        assert self._mcp_server is not None
        headers = {name: call.headers[name] for name in _FORWARDED if name in call.headers}
        idempotency_key = call.headers.get("Idempotency-Key")
        _CALLER.set(_McpCaller(call.dispatcher, headers, call.query.project, idempotency_key))
        response = await self._mcp_server.handle_message(call.query.profile, call.headers, body)
        return Reply(response.status, bytes(response.body), response.headers)

    @contextmanager
    def _observe_tool(self, tool: str) -> Iterator[None]:
        with self._call_metrics.time_call(tool) as outcome:
            try:
                yield
            except RestCallError as error:
                outcome.code = error.problem.code
                raise


async def _call_rest(
    method: str,
    path: str,
    query: RestQuery | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """A `RestClient` for the client of the current message."""
    caller = _CALLER.get()
    call_headers = dict(headers or {})
    if caller.idempotency_key and method != "GET":
        # Each write of a message gets an idempotency key of its own.
        digest = hashlib.sha256(caller.idempotency_key.encode()).hexdigest()
        call_headers["Idempotency-Key"] = f"mcp-{digest}-{next(caller.write_numbers)}"
    rest = InProcessRestClient(caller.dispatcher, caller.headers)
    return await rest(method, path, query, body, call_headers)

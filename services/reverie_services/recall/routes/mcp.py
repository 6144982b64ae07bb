"""Route for the Model Context Protocol over streamable HTTP, without sessions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

from reverie.contracts.base import Name
from reverie.domain.core.errors import Unavailable
from reverie.mcp.rest_calls import RestCallError, encode_query
from reverie.mcp.rest_calls import RestQuery as Parameters
from reverie.mcp.streamable_http import StreamableHttp, ToolProfile
from reverie.runtime.http.calls import JSON_MEDIA_TYPE, Call, Reply
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie.runtime.observability.call_metrics import CallMetrics
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie_services.recall.loopback import call_gateway


class McpQuery(QueryParams):
    """`profile`: which tools. `project`: what calls without a place mean."""

    profile: ToolProfile = "full"
    project: Name | None = None


@dataclass(frozen=True)
class _McpCaller:
    """Who asks, and where the REST calls of the answer go."""

    url: str
    authorization: str
    project: str | None
    key: str | None
    write_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def headers(self, method: str) -> dict[str, str]:
        """The key of whoever asks, and under its idempotency key one for each write."""
        headers = {"Authorization": self.authorization}
        if self.key and method != "GET":
            key_digest = hashlib.sha256(self.key.encode()).hexdigest()
            headers["Idempotency-Key"] = f"mcp-{key_digest}-{next(self.write_numbers)}"
        return headers


_CALLER: ContextVar[_McpCaller] = ContextVar("asker")


def build_mcp_routes(gateway: McpGateway, body_limit: int) -> list[Route]:
    """The one route of the protocol."""
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
    """The servers of all profiles. `seconds`: what one REST call of a tool may take."""

    def __init__(
        self, timeout: float, call_metrics: CallMetrics, client_metrics: HttpClientMetrics
    ) -> None:
        self._timeout = ClientTimeout(total=timeout)
        self._call_metrics, self._client_metrics = call_metrics, client_metrics
        self._ready = asyncio.Event()
        self._mcp_server = StreamableHttp(
            self._call_rest, lambda: _CALLER.get().project, self._observe_tool
        )
        self._http: ClientSession | None = None

    async def run(self) -> None:
        """Serves until it is cancelled."""
        async with (
            self._mcp_server.run(),
            ClientSession(
                timeout=self._timeout,
                cookie_jar=DummyCookieJar(),
                trace_configs=[self._client_metrics.trace_config()],
            ) as http,
        ):
            self._http = http
            self._ready.set()
            try:
                await asyncio.Event().wait()
            finally:
                self._ready.clear()

    async def handle_message(self, call: Call[None, McpQuery]) -> Reply:
        """`POST /mcp`: one message of the protocol, one JSON answer."""
        assert call.stream is not None
        async with asyncio.timeout(self._timeout.total):
            body = b"".join([chunk async for chunk in call.stream])
        authorization = call.headers.get("Authorization", "")
        idempotency_key = call.headers.get("Idempotency-Key")
        _CALLER.set(
            _McpCaller(call.internal_url, authorization, call.query.project, idempotency_key)
        )
        await self._ready.wait()
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
        self,
        method: str,
        path: str,
        query: Parameters | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        caller, http = _CALLER.get(), self._http
        if http is None:
            raise Unavailable("the gateway", "it is stopping")
        url = f"{caller.url}{path}{encode_query(query)}"
        return await call_gateway(
            http, method, url, body, {**(headers or {}), **caller.headers(method)}
        )

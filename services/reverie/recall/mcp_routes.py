"""The Model Context Protocol on the gateway: streamable HTTP, without sessions.

Every request stands for itself, so any replica may answer it. Tools make REST calls to this very
gateway, with the key of whoever asks: the rules are the same whatever the door.
"""

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
from reverie.domain.errors import Unavailable
from reverie.mcp.rest import Failed, parameters
from reverie.mcp.rest import Query as Parameters
from reverie.mcp.streamable import Profile, Streamable
from reverie.recall.own import ask_own
from reverie.runtime.body import Query
from reverie.runtime.call_meters import CallMeters
from reverie.runtime.calls import JSON, Call, Reply
from reverie.runtime.client_meters import ClientMeters
from reverie.runtime.routes import Route


class McpQuery(Query):
    """`profile`: which tools. `project`: what calls without a place mean."""

    profile: Profile = "full"
    project: Name | None = None


@dataclass(frozen=True)
class _Asker:
    """Who asks, and where the REST calls of the answer go."""

    url: str
    authorization: str
    project: str | None
    key: str | None
    writes: Iterator[int] = field(default_factory=lambda: count(1))

    def headers(self, method: str) -> dict[str, str]:
        """The key of whoever asks, and under its idempotency key one for each write."""
        sent = {"Authorization": self.authorization}
        if self.key and method != "GET":
            named = hashlib.sha256(self.key.encode()).hexdigest()
            sent["Idempotency-Key"] = f"mcp-{named}-{next(self.writes)}"
        return sent


_ASKER: ContextVar[_Asker] = ContextVar("asker")


def routes(protocol: Protocol, body_limit: int) -> list[Route]:
    """The one route of the protocol."""
    return [
        Route("POST", "/mcp", protocol.answer, query=McpQuery, streams=True,
              takes=(JSON,), gives={JSON: '{"jsonrpc": "2.0", "id": 1, "result": {}}'},
              stream_limit=body_limit, passes_on=True,
              summary="The Model Context Protocol, streamable HTTP"),
    ]  # fmt: skip


class Protocol:
    """The servers of all profiles. `seconds`: what one REST call of a tool may take."""

    def __init__(self, seconds: float, calls: CallMeters, clients: ClientMeters) -> None:
        self._timeout = ClientTimeout(total=seconds)
        self._calls, self._clients = calls, clients
        self._opened = asyncio.Event()
        self._served = Streamable(self._rest, lambda: _ASKER.get().project, self._seen)
        self._http: ClientSession | None = None

    async def keep_open(self) -> None:
        """Serves until it is cancelled."""
        async with (
            self._served.running(),
            ClientSession(
                timeout=self._timeout,
                cookie_jar=DummyCookieJar(),
                trace_configs=[self._clients.trace()],
            ) as http,
        ):
            self._http = http
            self._opened.set()
            try:
                await asyncio.Event().wait()
            finally:
                self._opened.clear()

    async def answer(self, call: Call[None, McpQuery]) -> Reply:
        """`POST /mcp`: one message of the protocol, one JSON answer."""
        assert call.stream is not None
        async with asyncio.timeout(self._timeout.total):
            body = b"".join([piece async for piece in call.stream])
        authorization = call.headers.get("Authorization", "")
        given = call.headers.get("Idempotency-Key")
        _ASKER.set(_Asker(call.reached_at, authorization, call.query.project, given))
        await self._opened.wait()
        said = await self._served.answer(call.query.profile, call.headers, body)
        return Reply(said.status, bytes(said.body), said.headers)

    @contextmanager
    def _seen(self, tool: str) -> Iterator[None]:
        with self._calls.timed(tool) as outcome:
            try:
                yield
            except Failed as failed:
                outcome.code = failed.problem.code
                raise

    async def _rest(
        self,
        method: str,
        path: str,
        query: Parameters | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        asker, http = _ASKER.get(), self._http
        if http is None:
            raise Unavailable("the gateway", "it is stopping")
        where = f"{asker.url}{path}{parameters(query)}"
        return await ask_own(
            http, method, where, body, {**(headers or {}), **asker.headers(method)}
        )

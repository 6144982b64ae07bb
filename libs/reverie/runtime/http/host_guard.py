"""Rejects foreign origins and hosts (DNS rebinding) and connections that stay silent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from aiohttp.web_protocol import RequestHandler

from reverie.domain.core.errors import HostNotAllowed, OriginNotAllowed
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.bad_requests import HttpConnection
from reverie.runtime.http.problem_responses import NextHandler

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_SHOWN_LENGTH = 200
_CLOSE_DELAY = 0.01


@web.middleware
async def mark_request_received(request: web.Request, handler: NextHandler) -> web.StreamResponse:
    """Notes that a whole head of a request has come over this connection."""
    if isinstance(request.protocol, HttpConnection):
        request.protocol.spoke = True
    return await handler(request)


def create_host_guard(listens_on: str, allowed_hosts: str) -> Middleware:
    """Raises `OriginNotAllowed` and `HostNotAllowed`. `allowed_hosts`: names of ours, separated
    by commas.

    Where none is given, any name will do unless it listens on this machine alone.
    """
    names = LOCAL_HOSTS | {
        name.strip().lower() for name in allowed_hosts.split(",") if name.strip()
    }
    any_name = not allowed_hosts.strip() and listens_on not in LOCAL_HOSTS

    @web.middleware
    async def check(request: web.Request, handler: NextHandler) -> web.StreamResponse:
        host = _host(f"//{request.headers.get('Host', '')}")
        if not any_name and host not in names and not _is_address(host):
            raise HostNotAllowed(redact(host[:_MAX_SHOWN_LENGTH]).text)
        origin = request.headers.get("Origin")
        if origin and _host(origin) not in {*LOCAL_HOSTS, host}:
            raise OriginNotAllowed(redact(origin[:_MAX_SHOWN_LENGTH]).text)
        return await handler(request)

    return check


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class GuardedSite(web.TCPSite):
    """A port that hangs up on who says no whole head of a request within `seconds`.

    Above `most` connections new ones are closed at once.
    """

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        bounds: tuple[float, int],
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(runner, host, port, ssl_context=context)
        self._header_timeout, self._max_connections = bounds

    async def start(self) -> None:
        """Listens."""
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None
        self._server = await asyncio.get_running_loop().create_server(
            lambda: self._create_connection(server),
            self._host,
            self._port,
            ssl=self._ssl_context,
            backlog=self._backlog,
        )

    def _create_connection(self, server: Callable[[], RequestHandler]) -> RequestHandler:
        connection = server()
        loop = asyncio.get_running_loop()
        if len(getattr(server, "connections", ())) >= self._max_connections:
            # Its transport is given to it a moment later.
            loop.call_later(_CLOSE_DELAY, _abort_connection, connection)
        else:
            loop.call_later(self._header_timeout, _close_if_silent, connection)
        return connection


def _close_if_silent(connection: RequestHandler) -> None:
    if not getattr(connection, "spoke", True):
        _abort_connection(connection)


def _abort_connection(connection: RequestHandler) -> None:
    if connection.transport is not None:
        connection.transport.abort()

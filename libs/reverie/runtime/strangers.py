"""Who is turned away before a key is asked for: pages of other hosts, names that are not ours, and
connections that say nothing.

A page that a browser has open may call this machine: with its own origin, or, where its name was
bound anew to an address of ours (DNS rebinding), under that name. A name is told from an address:
nobody can rebind an address.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from aiohttp.web_protocol import RequestHandler

from reverie.domain.errors import ForeignHost, ForeignPage
from reverie.domain.redaction import redact
from reverie.runtime.malformed import Connection
from reverie.runtime.problems import Next

OWN = frozenset({"localhost", "127.0.0.1", "::1"})
_SHOWN = 200
_MOMENT = 0.01


@web.middleware
async def spoken(request: web.Request, handler: Next) -> web.StreamResponse:
    """Notes that a whole head of a request has come over this connection."""
    if isinstance(request.protocol, Connection):
        request.protocol.spoke = True
    return await handler(request)


def own_pages_only(listens_on: str, allowed: str) -> Middleware:
    """Raises `ForeignPage` and `ForeignHost`. `allowed`: names of ours, separated by commas.

    Where none is given, any name will do unless it listens on this machine alone.
    """
    names = OWN | {name.strip().lower() for name in allowed.split(",") if name.strip()}
    any_name = not allowed.strip() and listens_on not in OWN

    @web.middleware
    async def check(request: web.Request, handler: Next) -> web.StreamResponse:
        host = _host(f"//{request.headers.get('Host', '')}")
        if not any_name and host not in names and not _is_address(host):
            raise ForeignHost(redact(host[:_SHOWN]).text)
        origin = request.headers.get("Origin")
        if origin and _host(origin) not in {*OWN, host}:
            raise ForeignPage(redact(origin[:_SHOWN]).text)
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
        self._seconds, self._most = bounds

    async def start(self) -> None:
        """Listens."""
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None
        self._server = await asyncio.get_running_loop().create_server(
            lambda: self._guarded(server),
            self._host,
            self._port,
            ssl=self._ssl_context,
            backlog=self._backlog,
        )

    def _guarded(self, server: Callable[[], RequestHandler]) -> RequestHandler:
        connection = server()
        loop = asyncio.get_running_loop()
        if len(getattr(server, "connections", ())) >= self._most:
            # Its transport is given to it a moment later.
            loop.call_later(_MOMENT, _hang_up, connection)
        else:
            loop.call_later(self._seconds, _look, connection)
        return connection


def _look(connection: RequestHandler) -> None:
    if not getattr(connection, "spoke", True):
        _hang_up(connection)


def _hang_up(connection: RequestHandler) -> None:
    if connection.transport is not None:
        connection.transport.abort()

"""Rejects requests for other hosts and from other origins (DNS rebinding)."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from reverie.domain.core.errors import HostNotAllowed, OriginNotAllowed
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.problem_responses import NextHandler

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_SHOWN_LENGTH = 200


def create_host_guard(listens_on: str, allowed_hosts: str) -> Middleware:
    """A middleware that raises `HostNotAllowed` or `OriginNotAllowed`.

    `allowed_hosts` holds names separated by commas. If it is empty, any name is allowed, unless
    the server listens on localhost only.
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

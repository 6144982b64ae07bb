"""Rejects requests for other hosts and from other origins (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from reverie.domain.core.errors import HostNotAllowed, OriginNotAllowed
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.dispatch import HeaderCheck

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_SHOWN_LENGTH = 200


def create_host_guard(listens_on: str, allowed_hosts: str) -> HeaderCheck:
    """A check of request headers that raises `HostNotAllowed` or `OriginNotAllowed`.

    `allowed_hosts` holds names separated by commas. If it is empty, any name is allowed, unless
    the server listens on localhost only.
    """
    names = LOCAL_HOSTS | {
        name.strip().lower() for name in allowed_hosts.split(",") if name.strip()
    }
    any_name = not allowed_hosts.strip() and listens_on not in LOCAL_HOSTS

    def check(headers: Mapping[str, str]) -> None:
        host = _host(f"//{headers.get('Host', '')}")
        if not any_name and host not in names and not _is_address(host):
            raise HostNotAllowed(redact(host[:_MAX_SHOWN_LENGTH]).text)
        origin = headers.get("Origin")
        if origin and _host(origin) not in {*LOCAL_HOSTS, host}:
            raise OriginNotAllowed(redact(origin[:_MAX_SHOWN_LENGTH]).text)

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

"""Rejects requests for other hosts and from other origins (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from reverie.domain.core.errors import HostNotAllowed, OriginNotAllowed
from reverie.domain.redaction.redactor import redact
from reverie.runtime.http.dispatch import HeaderCheck

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_PRIVATE_SUFFIXES = (".svc", ".cluster.local", ".local", ".internal", ".localhost", ".home.arpa")
_MAX_SHOWN_LENGTH = 200


def create_host_guard(listens_on: str, allowed_hosts: str) -> HeaderCheck:
    """A check of request headers that raises `HostNotAllowed` or `OriginNotAllowed`.

    `allowed_hosts` holds names separated by commas; `*` allows any name. If it is empty, names are
    allowed that nobody can register on the internet; only localhost if the server listens there.
    """
    names = LOCAL_HOSTS | {
        name.strip().lower() for name in allowed_hosts.split(",") if name.strip()
    }
    any_name = "*" in names
    private_names = not allowed_hosts.strip() and listens_on not in LOCAL_HOSTS

    def check(headers: Mapping[str, str]) -> None:
        host = _host(f"//{headers.get('Host', '')}")
        is_allowed = host in names or _is_address(host) or (private_names and _is_private(host))
        if not any_name and not is_allowed:
            raise HostNotAllowed(redact(host[:_MAX_SHOWN_LENGTH]).text)
        origin = headers.get("Origin")
        if origin and _host(origin) not in {*LOCAL_HOSTS, host}:
            raise OriginNotAllowed(redact(origin[:_MAX_SHOWN_LENGTH]).text)

    return check


def _is_private(host: str) -> bool:
    """Whether a name has no dot, or ends in a suffix for private use."""
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


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

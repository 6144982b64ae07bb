"""Probes a service's `/ready` or a NATS server. `python -m reverie.embedded.probe PORT [own]`."""

from __future__ import annotations

import json
import socket
import ssl
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit


def fetch_nats_info(host: str, port: int, login: dict[str, Any] | None = None) -> dict[str, Any]:
    """The server's own description (`version`, `jetstream`, `max_payload`, ...).

    With `login` it also has to accept that. Raises `OSError` where it does not.
    """
    with (
        socket.create_connection((host, port), timeout=2) as connection,
        connection.makefile("rb") as lines,
    ):
        greeting = lines.readline()
        if not greeting.startswith(b"INFO "):
            raise ConnectionError("this is no NATS server")
        if login is not None:
            connection.sendall(b"CONNECT " + json.dumps(login).encode() + b"\r\nPING\r\n")
            if not lines.readline().startswith(b"PONG"):
                raise ConnectionError("NATS refused the password")
    info: dict[str, Any] = json.loads(greeting[5:])
    return info


@dataclass(frozen=True)
class ServiceHealth:
    """What `/ready` said: `status` is None where nobody answered."""

    status: int | None
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether the service can work."""
        return self.status == 200

    @property
    def problem(self) -> str:
        """One line on what is missing; empty where nothing is."""
        if self.is_ready:
            return ""
        if self.status is None:
            return "does not answer"
        checks: dict[str, Any] = self.body.get("checks") or {}
        failed = [
            f"{name}: {check.get('hint') or 'not ready'}"
            for name, check in checks.items()
            if not check.get("ok")
        ]
        return "; ".join(failed) or f"answers {self.status}"


def fetch_health(url: str, timeout: float = 3.0, own_only: bool = False) -> ServiceHealth:
    """`GET /ready` of a service at its base URL; never raises.

    `own_only`: what all replicas share, as Postgres, is left out.

    Whoever answers is believed, whatever its certificate: nothing secret is sent.
    """
    connection = _open_connection(url, timeout)
    parts = urlsplit(url)
    try:
        path = f"{parts.path.rstrip('/')}/ready"
        connection.request("GET", f"{path}?own=true" if own_only else path)
        response = connection.getresponse()
        return ServiceHealth(response.status, _parse_object(response.read()))
    except (OSError, HTTPException):
        return ServiceHealth(None)
    finally:
        connection.close()


def _open_connection(url: str, timeout: float) -> HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme != "https":
        return HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    return HTTPSConnection(
        parts.hostname or "", parts.port, timeout=timeout, context=create_unverified_context()
    )


@lru_cache
def create_unverified_context() -> ssl.SSLContext:
    """A context for looks at how somebody is: it asks for no certificate's authority."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def is_service_ready(port: int, own_only: bool = False) -> bool:
    """Whether the service at a port of this machine is ready, be it by HTTPS or by HTTP."""
    urls = (f"{scheme}://127.0.0.1:{port}" for scheme in ("http", "https"))
    return any(fetch_health(url, own_only=own_only).is_ready for url in urls)


if __name__ == "__main__":
    sys.exit(not is_service_ready(int(sys.argv[1]), "own" in sys.argv[2:]))

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
    """Returns the server's own description (`version`, `jetstream`, `max_payload`, ...).

    With `login` the server must also accept the login. Raises `OSError` if it does not.
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
    """The response of `/ready`: `status` is None if there was no response."""

    status: int | None
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether the service can work."""
        return self.status == 200

    @property
    def problem(self) -> str:
        """One line on missing parts; empty if nothing is missing."""
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


def fetch_instance(url: str) -> str | None:
    """The instance that a service at a base URL belongs to.

    None if nothing answers, and an empty text if the answer is not that of a service.
    """
    try:
        _, content = fetch(url, "/health", 3.0)
        body = json.loads(content)
    except OSError:
        return None
    except ValueError:
        return ""
    return str(body.get("instance", "")) if isinstance(body, dict) else ""


def fetch_health(url: str, timeout: float = 3.0, own_only: bool = False) -> ServiceHealth:
    """Sends `GET /ready` to a service at its base URL; never raises.

    `own_only`: omits what all replicas share, such as Postgres. Any certificate is accepted:
    nothing secret is sent.
    """
    try:
        status, content = fetch(url, "/ready?own=true" if own_only else "/ready", timeout)
    except OSError:
        return ServiceHealth(None)
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    return ServiceHealth(status, body if isinstance(body, dict) else {})


def fetch(url: str, path: str, timeout: float) -> tuple[int, bytes]:
    """Status and body of a `GET` below a base URL, whatever its certificate. Raises `OSError`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection: HTTPConnection
    if parts.scheme == "https":
        context = _create_unverified_context()
        connection = HTTPSConnection(host, parts.port, timeout=timeout, context=context)
    else:
        connection = HTTPConnection(host, parts.port, timeout=timeout)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}{path}")
        response = connection.getresponse()
        return response.status, response.read()
    except HTTPException as error:
        raise ConnectionError("the answer is no HTTP") from error
    finally:
        connection.close()


@lru_cache
def _create_unverified_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def is_service_ready(port: int, own_only: bool = False) -> bool:
    """Whether the service at a port of this machine is ready, by HTTPS or by HTTP."""
    urls = (f"{scheme}://127.0.0.1:{port}" for scheme in ("http", "https"))
    return any(fetch_health(url, own_only=own_only).is_ready for url in urls)


if __name__ == "__main__":
    sys.exit(not is_service_ready(int(sys.argv[1]), "own" in sys.argv[2:]))

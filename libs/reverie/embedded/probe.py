"""Ask a service how it is. A container asks by `python -m reverie.embedded.probe PORT [own]`."""

from __future__ import annotations

import json
import ssl
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Health:
    """What `/ready` said: `status` is None where nobody answered."""

    status: int | None
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether the service can work."""
        return self.status == 200

    @property
    def problem(self) -> str:
        """One line on what is missing; empty where nothing is."""
        if self.ready:
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


def ask_ready(url: str, seconds: float = 3.0, own: bool = False) -> Health:
    """`GET /ready` of a service at its base URL; never raises.

    `own`: what all replicas share, as Postgres, is left out.

    Whoever answers is believed, whatever its certificate: nothing secret is sent.
    """
    connection = _connection(url, seconds)
    parts = urlsplit(url)
    try:
        path = f"{parts.path.rstrip('/')}/ready"
        connection.request("GET", f"{path}?own=true" if own else path)
        answer = connection.getresponse()
        return Health(answer.status, _object(answer.read()))
    except (OSError, HTTPException):
        return Health(None)
    finally:
        connection.close()


def _connection(url: str, seconds: float) -> HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme != "https":
        return HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    return HTTPSConnection(parts.hostname or "", parts.port, timeout=seconds, context=believing())


@lru_cache
def believing() -> ssl.SSLContext:
    """A context for looks at how somebody is: it asks for no certificate's authority."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def healthy(port: int, own: bool = False) -> bool:
    """Whether the service at a port of this machine is ready, be it by HTTPS or by HTTP."""
    urls = (f"{scheme}://127.0.0.1:{port}" for scheme in ("http", "https"))
    return any(ask_ready(url, own=own).ready for url in urls)


if __name__ == "__main__":
    sys.exit(not healthy(int(sys.argv[1]), "own" in sys.argv[2:]))

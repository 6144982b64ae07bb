"""What a NATS server says of itself to whoever connects."""

from __future__ import annotations

import json
import socket
from typing import Any


def greet(host: str, port: int, login: dict[str, Any] | None = None) -> dict[str, Any]:
    """The server's own description (`version`, `jetstream`, `max_payload`, ...).

    With `login` it also has to accept that. Raises `OSError` where it does not.
    """
    with socket.create_connection((host, port), timeout=2) as s, s.makefile("rb") as lines:
        said = lines.readline()
        if not said.startswith(b"INFO "):
            raise ConnectionError("this is no NATS server")
        if login is not None:
            s.sendall(b"CONNECT " + json.dumps(login).encode() + b"\r\nPING\r\n")
            if not lines.readline().startswith(b"PONG"):
                raise ConnectionError("NATS refused the password")
    info: dict[str, Any] = json.loads(said[5:])
    return info

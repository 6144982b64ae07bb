"""Ports on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterable

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(_family(host)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = LOOPBACK, avoid: Iterable[int] = ()) -> int:
    """A port that nobody listens on now."""
    taken = set(avoid)
    while True:
        with socket.socket(_family(host)) as s:
            s.bind((host, 0))
            port = int(s.getsockname()[1])
        if port not in taken:
            return port


def choose(preferred: int, host: str = LOOPBACK, avoid: Iterable[int] = ()) -> int:
    """The preferred port, or any free one where it is taken or 0."""
    taken = set(avoid)
    if preferred and preferred not in taken and is_free(preferred, host):
        return preferred
    return free_port(host, taken)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET

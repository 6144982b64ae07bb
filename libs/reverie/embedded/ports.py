"""Chooses free TCP ports on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from reverie.embedded.processes import wait_until

LOOPBACK = "127.0.0.1"
REUSE_TIMEOUT = 3.0
"""Seconds that a port used before is waited for."""
UNASSIGNED_PORTS = range(20_000, 32_768)
"""Below what Linux (32768) and others (49152) give to who connects, or listens on any port."""
RANDOM_ATTEMPTS = 64


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(_address_family(host)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


def find_free_port(host: str = LOOPBACK, avoid: Iterable[int] = ()) -> int:
    """Returns a port that is free now.

    Prefers a port outside the range that the system assigns by itself. It then stays free until
    used, unless a program requests that very port.
    """
    taken = set(avoid)
    for port in random.sample(UNASSIGNED_PORTS, RANDOM_ATTEMPTS):
        if port not in taken and is_free(port, host):
            return port
    while True:
        with socket.socket(_address_family(host)) as listener:
            listener.bind((host, 0))
            port = int(listener.getsockname()[1])
        if port not in taken:
            return port


def choose_port(preferred: int, host: str = LOOPBACK, avoid: Iterable[int] = ()) -> int:
    """Returns the preferred port, or any free one if it is in use or 0."""
    taken = set(avoid)
    if preferred and preferred not in taken and is_free(preferred, host):
        return preferred
    return find_free_port(host, taken)


def choose_same_port(preferred: int, previous: int, host: str = LOOPBACK) -> int:
    """Returns the previous port if that is the preferred one; else as `choose_port`.

    A killed server's children may hold its port for a moment, and its clients know that port, so
    this waits until it is free.
    """
    requested = preferred or previous
    if requested and requested == previous:
        wait_until(lambda: is_free(requested, host), REUSE_TIMEOUT, 0.05)
    return choose_port(requested, host)


def _address_family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET

"""Addresses of servers behind a proxy."""

from __future__ import annotations

from urllib.parse import urlsplit


def port_of(url: str) -> int:
    """The port that a URL names."""
    port = urlsplit(url).port
    assert port is not None
    return port


def at_port(url: str, port: int) -> str:
    """The same URL with another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{port}")).geturl()

"""Addresses of servers behind a proxy."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from reverie.testing.servers import Database


def port_of(url: str) -> int:
    """The port that a URL names."""
    port = urlsplit(url).port
    assert port is not None
    return port


def at_port(url: str, port: int) -> str:
    """The same URL with another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{port}")).geturl()


def behind_port(database: Database, port: int) -> Database:
    """The same database, reached by services at another port."""
    services, reader = (at_port(url, port) for url in (database.service_url, database.reader_url))
    return replace(database, service_url=services, reader_url=reader)

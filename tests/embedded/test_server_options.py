"""Ports, binaries, memory, disk and addresses of the embedded servers."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reverie.bus.streams import STREAMS
from reverie.domain.core.errors import Misconfigured
from reverie.embedded import ports
from reverie.embedded.home import open_home
from reverie.embedded.probe import ServiceHealth, fetch_health
from reverie.embedded.servers import binaries, postgres
from reverie.embedded.servers.backends import NatsBackend, strip_url_credentials
from reverie.embedded.servers.nats import CONFIG_TEMPLATE
from reverie.runtime.process import system_resources
from reverie.runtime.settings.settings import Settings


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind((ports.LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.choose_port(port) != port
    assert ports.choose_port(port) == port


def test_binaries_are_taken_from_a_configured_folder(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="REVERIE_POSTGRES_BIN"):
        binaries.find_postgres_bin(tmp_path)
    for name in ("postgres", "initdb", "nats-server"):
        (tmp_path / name).touch(0o755)
    assert binaries.find_postgres_bin(tmp_path) == tmp_path.resolve()
    assert binaries.find_nats_server(tmp_path) == tmp_path.resolve() / "nats-server"


def test_postgres_buffers_grow_with_the_data_within_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, limit = open_home(tmp_path), tmp_path / "memory.max"
    monkeypatch.setattr(system_resources, "MEMORY_LIMIT_FILES", [limit])
    numbers = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 256 * 2**30 // 4096}
    monkeypatch.setattr(os, "sysconf", numbers.__getitem__)
    assert postgres._shared_buffers(home) == "48MB"
    table = home.postgres / "base" / "5" / "16384"
    table.parent.mkdir(parents=True)
    for stored, kept in ((20, "48MB"), (200, "100MB"), (2_000, "1000MB"), (20_000, "2048MB")):
        table.touch()
        os.truncate(table, stored << 20)
        assert postgres._shared_buffers(home) == kept
    limit.write_text("max\n")
    assert postgres._shared_buffers(home) == "2048MB"
    limit.write_text(f"{4 * 2**30}\n")
    assert postgres._shared_buffers(home) == "256MB"


def test_an_address_is_shown_without_its_password() -> None:
    shown = strip_url_credentials("nats://me:secret@a:4222,nats://me:secret@b:4222")
    assert shown == "nats://a:4222,nats://b:4222"


def test_an_address_without_a_listener_is_unhealthy() -> None:
    health = fetch_health(f"http://127.0.0.1:{ports.find_free_port()}")
    assert (health.status, health.is_ready, health.problem) == (None, False, "does not answer")


def test_a_service_that_is_not_ready_names_what_is_missing() -> None:
    checks = {"bus": {"ok": True}, "postgres": {"ok": False, "hint": "is it running?"}}
    assert ServiceHealth(503, {"checks": checks}).problem == "postgres: is it running?"


def test_a_server_whose_port_is_taken_tells_where_it_went(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        backend = NatsBackend(Settings(nats_port=port), open_home(tmp_path))
        backend.open()
        [server] = backend.processes
        try:
            assert server.moved_port == urlsplit(backend.url).port != port
        finally:
            server.stop()


def test_the_embedded_nats_starts_on_a_disk_that_is_nearly_full() -> None:
    """What streams may hold is reserved: by default only within what is free at the start."""
    [gigabytes] = re.findall(r"max_file_store: (\d+)GB", CONFIG_TEMPLATE)
    assert int(gigabytes) * 10**9 > sum(spec.max_bytes for spec in STREAMS)

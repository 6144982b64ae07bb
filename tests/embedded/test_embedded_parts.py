"""Home folder, secrets, ports, locks, logs and processes of the embedded servers."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import stat
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from reverie.bus.streams import STREAMS
from reverie.domain.core.errors import Conflict, Misconfigured
from reverie.embedded import home, ports, privileges
from reverie.embedded.home import open_home
from reverie.embedded.lock import hold_home_lock, is_home_locked
from reverie.embedded.probe import ServiceHealth, fetch_health
from reverie.embedded.processes import (
    LOG_LIMIT,
    open_log,
    read_last_lines,
)
from reverie.embedded.servers import binaries, postgres
from reverie.embedded.servers.backends import NatsBackend, PostgresBackend, strip_url_credentials
from reverie.embedded.servers.nats import CONFIG_TEMPLATE
from reverie.embedded.supervision.process_watch import supervise
from reverie.embedded.supervision.service_layout import ServerUrls, build_environment
from reverie.embedded.supervision.supervisor import _with_vault_key
from reverie.embedded.tls import certificates
from reverie.embedded.tls.setup import prepare_tls
from reverie.embedded.watchdog import MAX_RESTART_DELAY, SupervisedServer, watch_processes
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.inference.model_resolver import is_external_model
from reverie.runtime.process import system_resources
from reverie.runtime.settings.settings import Settings
from reverie.store.db.encryption import create_cipher

STRANGER = 54_321


def test_secrets_are_created_once_and_readable_by_their_owner_only(tmp_path: Path) -> None:
    place = open_home(tmp_path / "home")
    first = home.get_or_create_secret(place, "nats")
    assert home.get_or_create_secret(place, "nats") == first
    assert len(first) >= 43
    assert stat.S_IMODE((place.secrets / "nats").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.secrets.stat().st_mode) == 0o700


def test_the_vault_has_its_own_master_key_unless_one_is_set(tmp_path: Path) -> None:
    place = open_home(tmp_path / "home")
    made = _with_vault_key(Settings(), place).vault_key
    assert made is not None
    file = place.secrets / "vault_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == made.get_secret_value()
    assert create_cipher(made.get_secret_value()).newest_key_id is not None
    assert _with_vault_key(Settings(), place).vault_key == made
    given = SecretStr("given")
    assert _with_vault_key(Settings(vault_key=given), place).vault_key == given


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    open_home(closed)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_created_is_an_invalid_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="REVERIE_HOME"):
        open_home(tmp_path / "file" / "home")


def test_a_folder_closed_to_others_is_not_reachable_for_another_user(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    for folder in (top, top / "below"):
        folder.chmod(0o711)
    inside = privileges.is_reachable(top / "below", STRANGER, STRANGER)
    assert inside == privileges.is_reachable(tmp_path, STRANGER, STRANGER)
    top.chmod(0o700)
    assert not privileges.is_reachable(top / "below", STRANGER, STRANGER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand Postgres on")
def test_root_without_access_to_the_data_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    assert privileges.choose_account(tmp_path / "postgres").passes_closed_folders
    monkeypatch.setattr(privileges, "permitted_capabilities", lambda: 0)
    with pytest.raises(Misconfigured, match=r"Run as a normal user, or set REVERIE_HOME"):
        privileges.choose_account(tmp_path / "postgres")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand Postgres on")
def test_the_smaller_capability_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    both, override = 1 << 1 | 1 << 2 | 1 << 8, 1 << 1 | 1 << 8
    monkeypatch.setattr(privileges, "permitted_capabilities", lambda: both)
    assert (
        "--ambient-caps=-all,+dac_read_search" in privileges.choose_account(tmp_path / "p").prefix
    )
    monkeypatch.setattr(privileges, "permitted_capabilities", lambda: override)
    assert "--ambient-caps=-all,+dac_override" in privileges.choose_account(tmp_path / "p").prefix


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


def test_one_home_has_one_supervisor(tmp_path: Path) -> None:
    place = open_home(tmp_path)
    assert not is_home_locked(place)
    with hold_home_lock(place):
        assert is_home_locked(place)
        with pytest.raises(Conflict, match="already up"), hold_home_lock(place):
            pass
    assert not is_home_locked(place)


def test_a_log_is_bounded_and_its_end_can_be_read(tmp_path: Path) -> None:
    log = tmp_path / "dream.log"
    log.write_bytes(b"x" * LOG_LIMIT + b"\none\ntwo\n")
    os.close(open_log(log))
    assert log.stat().st_size == 0
    assert read_last_lines(log.with_name("dream.log.1"), 2) == "one\ntwo"


def test_services_receive_only_the_secrets_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_API_KEY", "rv_of_the_supervisor")
    settings = Settings(
        home=tmp_path, api_key=SecretStr("rv_mine"), shutdown_timeout=60, llm_provider="none"
    )
    servers = ServerUrls("postgresql://h/d", "postgresql://reads@h/d", "nats://ingest@h")
    chosen = {"ingest": 1, "dream": 2, "derive": 3, "dream-worker": 4}
    services, worker = (
        build_environment(process, settings, chosen, servers) for process in ("all", "derive")
    )
    assert "REVERIE_API_KEY" not in services
    assert services["REVERIE_SHUTDOWN_TIMEOUT"] == "3.0"
    assert services["REVERIE_LIFELINE"] == "1"
    assert services["REVERIE_DATABASE_URL"] == "postgresql://h/d"
    assert services["REVERIE_DATABASE_READONLY_URL"] == "postgresql://reads@h/d"
    assert services["REVERIE_NATS_URL"] == "nats://ingest@h"
    ports_of = [
        (env["REVERIE_INGEST_PORT"], env["REVERIE_DREAM_PORT"]) for env in (services, worker)
    ]
    assert ports_of == [("1", "2"), ("3", "4")]


def test_a_certificate_is_reused_and_renewed_before_it_ends_or_when_names_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = certificates.collect_host_names("127.0.0.1", "memory.example, ")
    files = certificates.ensure_certificate(tmp_path / "tls", names)
    kept = [path.read_bytes() for path in (files.ca, files.cert, files.key)]
    modes = {path.name: path.stat().st_mode & 0o777 for path in files.cert.parent.iterdir()}
    assert modes == {"ca.pem": 0o644, "cert.pem": 0o644, "key.pem": 0o600, "ca-key.pem": 0o600}
    ssl.create_default_context(cafile=str(files.ca))
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert [path.read_bytes() for path in (files.ca, files.cert, files.key)] == kept
    # Another name, and an end that is near: the certificate alone is made anew.
    certificates.ensure_certificate(tmp_path / "tls", [*names, "other.example"])
    ca, cert, key = (path.read_bytes() for path in (files.ca, files.cert, files.key))
    assert (ca, key) == (kept[0], kept[2])
    assert cert != kept[1]
    monkeypatch.setattr(certificates, "RENEWAL_DAYS", certificates.CERTIFICATE_DAYS + 1)
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert files.cert.read_bytes() != cert
    assert files.ca.read_bytes() == ca
    # An authority that ends takes its certificates with it.
    monkeypatch.setattr(certificates, "CA_RENEWAL_DAYS", certificates.CA_DAYS + 1)
    certificates.ensure_certificate(tmp_path / "tls", names)
    assert files.ca.read_bytes() != ca


def test_the_setting_files_are_those_of_the_gateway_and_other_services_show_their_own(
    tmp_path: Path,
) -> None:
    place = open_home(tmp_path)
    assert prepare_tls(Settings(home=tmp_path), place) is None
    signed = Settings(home=tmp_path, tls_source="self-signed")
    own = prepare_tls(signed, place)
    assert own is not None
    for service in ("recall", "dream"):
        assert own.settings_for(service, signed).tls_cert == own.own_files.cert
    given = Settings(home=tmp_path, tls_cert=Path("/c"), tls_key=Path("/k"), ca_file=Path("/a"))
    files = prepare_tls(given, place)
    assert files is not None
    gateway, dream = (files.settings_for(service, given) for service in ("recall", "dream"))
    assert (gateway.tls_cert, gateway.tls_key) == (Path("/c"), Path("/k"))
    assert (gateway.ca_file, dream.ca_file) == (own.own_files.ca, Path("/a"))
    assert dream.tls_cert == own.own_files.cert
    for half in ({"tls_cert": Path("/c")}, {"tls_key": Path("/k")}):
        with pytest.raises(Misconfigured, match="beside it"):
            prepare_tls(Settings.model_validate({"home": tmp_path, **half}), place)


def test_an_address_is_shown_without_its_password() -> None:
    shown = strip_url_credentials("nats://me:secret@a:4222,nats://me:secret@b:4222")
    assert shown == "nats://a:4222,nats://b:4222"


def test_an_address_without_a_listener_is_unhealthy() -> None:
    health = fetch_health(f"http://127.0.0.1:{ports.find_free_port()}")
    assert (health.status, health.is_ready, health.problem) == (None, False, "does not answer")


def test_a_service_that_is_not_ready_names_what_is_missing() -> None:
    checks = {"bus": {"ok": True}, "postgres": {"ok": False, "hint": "is it running?"}}
    assert ServiceHealth(503, {"checks": checks}).problem == "postgres: is it running?"


class _Mortal:
    """A part that dies as soon as it is looked at, a number of times."""

    name = "mortal"

    def __init__(self, lives: int, all_used: asyncio.Event) -> None:
        self.starts = 0
        self._lives = lives
        self._all_used = all_used

    def start(self) -> None:
        self.starts += 1
        if self.starts == self._lives:
            self._all_used.set()

    def is_running(self) -> bool:
        return self.starts >= self._lives

    def stop(self) -> None:
        raise AssertionError("the watch stops nothing")


class _Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


async def test_a_dead_process_is_restarted_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reverie.embedded.watchdog.FIRST_RESTART_DELAY", 0.01)
    monkeypatch.setattr("reverie.embedded.watchdog.CHECK_SECONDS", 0.001)
    stop, notes = asyncio.Event(), _Notes()
    part = _Mortal(3, stop)
    await watch_processes([part], stop, notes)
    assert notes.notes == [
        f"the process mortal ended; it starts again in {pause} s"
        for pause in ("0.01", "0.02", "0.04")
    ]
    assert part.starts == 3


async def test_a_process_that_ran_for_a_while_is_restarted_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reverie.embedded.watchdog.FIRST_RESTART_DELAY", 0.01)
    monkeypatch.setattr("reverie.embedded.watchdog.CHECK_SECONDS", 0.001)
    monkeypatch.setattr("reverie.embedded.watchdog.STABLE_SECONDS", 0.0)
    stop, notes = asyncio.Event(), _Notes()
    await watch_processes([_Mortal(4, stop)], stop, notes)
    assert notes.notes == ["the process mortal ended; it starts again in 0.01 s"] * 4


class _Unwatchable(_Mortal):
    """A part whose state cannot be read."""

    def is_running(self) -> bool:
        raise PermissionError


async def test_an_error_ends_all_watching_and_renews_no_certificate(tmp_path: Path) -> None:
    stop = asyncio.Event()
    part = cast("SupervisedServer", _Unwatchable(1, stop))
    with pytest.raises(PermissionError):
        await supervise([part], [], (tmp_path, ["localhost"]), stop, _Notes())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


def test_the_restart_delay_is_bounded() -> None:
    assert MAX_RESTART_DELAY <= 8


def test_a_custom_model_is_named_by_its_address_or_folder(tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    assert is_external_model("mine", tmp_path, None, None)
    assert is_external_model("theirs", tmp_path, None, "https://models.example/v1")
    assert not is_external_model("theirs", tmp_path, None, None)
    assert not is_external_model(DEFAULT_MODEL, tmp_path, None, None)


def test_a_text_that_is_no_key_becomes_none(tmp_path: Path) -> None:
    place = open_home(tmp_path)
    home.write_secret(place, "api_key", "garbage")
    backend = PostgresBackend(Settings(), place)
    backend.processes.append(None)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match=r"api_key: holds no API key: .*delete the file"):
        backend.ensure_key()


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

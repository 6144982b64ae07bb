"""NATS with JetStream as a child process: adopted when it survived its parent."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from reverie.bus.permissions import ACCOUNT, KEEPER, PUBLISHES, users
from reverie.domain.errors import Unavailable
from reverie.embedded import binaries, ports, processes
from reverie.embedded.greeting import greet
from reverie.embedded.home import Home, read_note, secret, write_note, write_private

USER = KEEPER
STOPS = ((signal.SIGTERM, 1.2), (signal.SIGKILL, 0.5))
"""Orderly shutdown, then the kernel; seconds for each."""

CONFIG = """\
server_name: reverie
listen: {listen}
max_payload: 1MB
jetstream {{
  store_dir: {store}
  sync_interval: "{sync}"
}}
{users}"""


@dataclass(frozen=True)
class NatsSpec:
    """Which NATS to run. A port of 0 means any free one; `sync` is JetStream's fsync interval."""

    home: Home
    port: int = 0
    host: str = ports.LOOPBACK
    bin: Path | None = None
    sync: str = "5s"


@dataclass(frozen=True)
class Nats:
    """A running NATS; `adopted` when it was found running."""

    pid: int
    host: str
    port: int
    adopted: bool
    password: str = field(repr=False)
    child: processes.Child | None = field(default=None, repr=False, compare=False)

    @property
    def url(self) -> str:
        """The URL of the user that may do everything, with its password."""
        return f"nats://{USER}:{self.password}@{self.host}:{self.port}"

    def url_of(self, home: Home, service: str) -> str | None:
        """The URL for a service, as the user that may do what it needs; None for one without."""
        if service not in PUBLISHES:
            return None
        return f"nats://{service}:{secret(home, _secret(service))}@{self.host}:{self.port}"


def start(spec: NatsSpec) -> Nats:
    """Adopt the server that runs on this store, or start one. Answers when it takes clients.

    Raises `Misconfigured` (binary) and `Unavailable` (it does not come up).
    """
    found = find(spec.home)
    if found is not None:
        if healthy(found) and _knows_services(found, spec.home):
            return found
        stop(found)
    again = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_delay(10),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    return again(_start, spec)


def find(home: Home) -> Nats | None:
    """The server that runs on this store now, whoever started it."""
    note = read_note(home, "nats")
    pid, port = note.get("pid"), note.get("port")
    if not isinstance(pid, int) or not isinstance(port, int):
        return None
    if not processes.runs(pid, str(_config(home))):
        return None
    host = str(note.get("host", ports.LOOPBACK))
    return Nats(pid, host, port, adopted=True, password=secret(home, "nats"))


def stop(server: Nats) -> None:
    """End the server in order. At most 1.7 seconds."""
    processes.stop(server.pid, STOPS, server.child)


def running(server: Nats) -> bool:
    """Whether the server's process is there."""
    child = server.child
    return child.poll() is None if child else processes.alive(server.pid)


def healthy(server: Nats) -> bool:
    """Whether it takes our password and runs JetStream."""
    return _takes(server, USER, server.password)


def _takes(server: Nats, user: str, password: str) -> bool:
    login = {"user": user, "pass": password, "verbose": False, "pedantic": False}
    try:
        return bool(greet(server.host, server.port, login).get("jetstream"))
    except OSError:
        return False


def _knows_services(server: Nats, home: Home) -> bool:
    """Whether it was started with a user for each service; one of an older release was not."""
    return all(_takes(server, user, secret(home, _secret(user))) for user in PUBLISHES)


def _secret(user: str) -> str:
    return "nats" if user == USER else f"nats-{user}"


def _config(home: Home) -> Path:
    return home.nats / "nats.conf"


def _start(spec: NatsSpec) -> Nats:
    binary = binaries.nats_server(spec.bin)
    noted = int(read_note(spec.home, "nats").get("port", 0))
    port = ports.choose_again(spec.port, noted, spec.host)
    password = secret(spec.home, "nats")
    _write_config(spec, port)
    log = spec.home.logs / "nats.log"
    child = processes.spawn([str(binary), "-c", str(_config(spec.home))], log)
    write_note(spec.home, "nats", {"pid": child.pid, "host": spec.host, "port": port})
    server = Nats(child.pid, spec.host, port, adopted=False, password=password, child=child)
    processes.await_ready(child, lambda: healthy(server), "NATS", log)
    return server


def _move_into_account(store: Path) -> None:
    """Streams of a release that had no accounts lie in the one that a server has by itself."""
    before, now = (store / "jetstream" / name for name in ("$G", ACCOUNT))
    if before.is_dir() and not now.exists():
        before.rename(now)


def _write_config(spec: NatsSpec, port: int) -> None:
    store = spec.home.nats / "jetstream"
    _move_into_account(store)
    text = CONFIG.format(
        listen=json.dumps(f"{spec.host}:{port}"),
        store=json.dumps(str(store)),
        sync=spec.sync,
        users=users(
            {user: json.dumps(secret(spec.home, _secret(user))) for user in (USER, *PUBLISHES)}
        ),
    )
    write_private(_config(spec.home), text)

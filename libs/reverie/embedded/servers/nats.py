"""Runs NATS with JetStream as a child process; a server that survived its parent is adopted.

The package of the bus is imported where a server starts: who only looks after one needs none.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from reverie.bus.users import ADMIN_USER
from reverie.domain.core.errors import Unavailable
from reverie.embedded import ports, processes
from reverie.embedded.home import (
    Home,
    get_or_create_secret,
    read_run_file,
    write_private_file,
    write_run_file,
)
from reverie.embedded.probe import fetch_nats_info
from reverie.embedded.servers import binaries

COLLECTOR = {"GOGC": "50"}
"""The heap grows by half, not twofold, before it is collected: some MB less, and 3 µs a message."""
STOP_SIGNALS = ((signal.SIGTERM, 1.2), (signal.SIGKILL, 0.5))
"""Orderly shutdown, then the kernel; seconds for each."""

CONFIG_TEMPLATE = """\
server_name: reverie
listen: {listen}
max_payload: 1MB
jetstream {{
  store_dir: {store}
  # More than all streams may hold. By default it would be three quarters of what is free on the
  # disk at each start, and a disk with less than that would be refused.
  max_file_store: 4GB
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
class NatsInstance:
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
        return f"nats://{ADMIN_USER}:{self.password}@{self.host}:{self.port}"

    def url_for(self, home: Home, service: str) -> str | None:
        """The URL for a service, with the user of its permissions.

        None for a service without one.
        """
        from reverie.bus.permissions import PUBLISH_PERMISSIONS

        if service not in PUBLISH_PERMISSIONS:
            return None
        password = get_or_create_secret(home, _secret_name(service))
        return f"nats://{service}:{password}@{self.host}:{self.port}"


def start(spec: NatsSpec) -> NatsInstance:
    """Adopts the server that runs on this store, or starts one. Returns when it accepts clients.

    Raises `Misconfigured` (binary) and `Unavailable` (it does not start).
    """
    existing = find(spec.home)
    if existing is not None:
        if is_healthy(existing) and _has_service_users(existing, spec.home):
            return existing
        stop(existing)
    retrying = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_delay(10),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    return retrying(_start_new, spec)


def find(home: Home) -> NatsInstance | None:
    """The server that runs on this store now, if this process started it or not."""
    state = read_run_file(home, "nats")
    pid, port = state.get("pid"), state.get("port")
    if not isinstance(pid, int) or not isinstance(port, int):
        return None
    if not processes.is_running(pid, str(_config_path(home))):
        return None
    host = str(state.get("host", ports.LOOPBACK))
    return NatsInstance(pid, host, port, adopted=True, password=get_or_create_secret(home, "nats"))


def stop(server: NatsInstance) -> None:
    """End the server in order. At most 1.7 seconds."""
    processes.stop(server.pid, STOP_SIGNALS, server.child)


def is_healthy(server: NatsInstance) -> bool:
    """Whether it accepts our password and runs JetStream."""
    return _accepts_login(server, ADMIN_USER, server.password)


def _accepts_login(server: NatsInstance, user: str, password: str) -> bool:
    login = {"user": user, "pass": password, "verbose": False, "pedantic": False}
    try:
        return bool(fetch_nats_info(server.host, server.port, login).get("jetstream"))
    except OSError:
        return False


def _has_service_users(server: NatsInstance, home: Home) -> bool:
    """Whether it was started with a user for each service of this release."""
    from reverie.bus.permissions import PUBLISH_PERMISSIONS

    return all(
        _accepts_login(server, user, get_or_create_secret(home, _secret_name(user)))
        for user in PUBLISH_PERMISSIONS
    )


def _secret_name(user: str) -> str:
    return "nats" if user == ADMIN_USER else f"nats-{user}"


def _config_path(home: Home) -> Path:
    return home.nats / "nats.conf"


def _start_new(spec: NatsSpec) -> NatsInstance:
    binary = binaries.find_nats_server(spec.bin)
    previous_port = int(read_run_file(spec.home, "nats").get("port", 0))
    port = ports.choose_same_port(spec.port, previous_port, spec.host)
    password = get_or_create_secret(spec.home, "nats")
    _write_config(spec, port)
    log = spec.home.logs / "nats.log"
    command = [str(binary), "-c", str(_config_path(spec.home))]
    child = processes.spawn(command, log, env=COLLECTOR | os.environ)
    write_run_file(spec.home, "nats", {"pid": child.pid, "host": spec.host, "port": port})
    server = NatsInstance(child.pid, spec.host, port, adopted=False, password=password, child=child)
    processes.wait_until_ready(child, lambda: is_healthy(server), "NATS", log)
    return server


def _write_config(spec: NatsSpec, port: int) -> None:
    from reverie.bus.permissions import PUBLISH_PERMISSIONS, render_accounts

    store = spec.home.nats / "jetstream"
    text = CONFIG_TEMPLATE.format(
        listen=json.dumps(f"{spec.host}:{port}"),
        store=json.dumps(str(store)),
        sync=spec.sync,
        users=render_accounts(
            {
                user: json.dumps(get_or_create_secret(spec.home, _secret_name(user)))
                for user in (ADMIN_USER, *PUBLISH_PERMISSIONS)
            }
        ),
    )
    write_private_file(_config_path(spec.home), text)

"""Starts the services as child processes that end when the supervisor dies.

Their stdin is a pipe whose other end only the supervisor holds: when it dies, in whatever way, they
read end of file and shut down.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.embedded import ports, processes
from reverie.embedded.forker import ABLE, Forked, Forker
from reverie.embedded.home import Home, read_run_file, write_run_file
from reverie.embedded.reporting import DERIVE, GATEWAY, SERVICES
from reverie.embedded.tls import TlsSetup
from reverie.runtime.settings.settings import PREFIX, Settings

STOP_SIGNALS = ((signal.SIGTERM, 4.0), (signal.SIGKILL, 0.5))
SHUTDOWN_GRACE = 3.0
"""Seconds that requests in flight get at shutdown, so that all ends within ten."""

GRPC = "grpc"
"""The gateway's other door, which has a port of its own."""
WITHHELD_SETTINGS = {
    *("api_key", "tls_source", "tls_cert", "tls_key", "grpc_cert", "grpc_key"),
    *("database_url", "database_migration_url", "database_readonly_url"),
    *("nats_url", "nats_creds", "nats_nkey"),
}
"""Settings that no service needs, or not every one."""
LANGUAGE_MODULE = "reverie.inference.llm_transport"
"""What asks language models: it takes as long to import as all else."""
_SERVED_BY_PROCESS = {DERIVE: "ingest"}
"""What a process serves, where it is not called by that."""


@dataclass(frozen=True)
class ServerConnections:
    """Where the servers are for each service: as a user that may do what it needs, and no more."""

    database_url: str = field(repr=False)
    reader_url: str | None = field(repr=False)
    bus_url_for: Callable[[str], str | None] = field(repr=False)
    tls: TlsSetup | None = None
    bus_files: Mapping[str, Path | None] = field(default_factory=dict)

    def environment_for(self, service: str) -> dict[str, str]:
        """What a service is told of them."""
        variables = {
            "DATABASE_URL": self.database_url,
            "READER_DATABASE_URL": self.reader_url if service == GATEWAY else None,
        }
        if service != GATEWAY:
            files = {name: str(path) for name, path in self.bus_files.items() if path}
            variables |= {"NATS_URL": self.bus_url_for(service), **files}
        if self.tls is not None:
            variables |= self.tls.environment_for(service)
        return {PREFIX + name: url for name, url in variables.items() if url}


class ServiceProcess:
    """One service; may be started again after its end."""

    def __init__(
        self,
        name: str,
        home: Home,
        environment: Mapping[str, str],
        stdin: int,
        forker: Forker | None = None,
    ) -> None:
        self.name = name
        self.log = home.logs / f"{name}.log"
        self._home = home
        self._environment = environment
        self._stdin = stdin
        self._forker = forker
        self._child: processes.Child | Forked | None = None

    def start(self) -> None:
        """Start the process; it is not ready yet."""
        self._child = self._fork() or self._spawn()
        pids = read_run_file(self._home, "services")
        write_run_file(self._home, "services", pids | {self.name: self._child.pid})

    def _fork(self) -> Forked | None:
        if self._forker is not None and self._forker.is_running():
            with suppress(Unavailable):
                service = _served_service(self.name)
                return self._forker.fork(service, self._environment, self.log, self._stdin)
        return None

    def _spawn(self) -> processes.Child:
        command = [
            sys.executable,
            "-P",
            "-m",
            "reverie.cli.app.main",
            "serve",
            _served_service(self.name),
        ]
        return processes.spawn(command, self.log, env=self._environment, stdin=self._stdin)

    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._child is not None and self._child.poll() is None

    def stop(self) -> None:
        """End it in order; at most 4.5 seconds."""
        if self._child is not None:
            processes.stop(self._child.pid, STOP_SIGNALS, self._child)


def _served_service(name: str) -> str:
    return _SERVED_BY_PROCESS.get(name, name)


def stop_leftovers(home: Home) -> None:
    """End services of a supervisor that was killed; they may still be on their way out."""
    leftovers = {
        name: pid
        for name, pid in read_run_file(home, "services").items()
        if isinstance(pid, int)
        and processes.is_running(pid, "reverie", "serve", _served_service(name))
    }
    for pid in leftovers.values():
        processes.stop(pid, [(signal.SIGTERM, 0.01)])
    for pid in leftovers.values():
        processes.stop(pid, STOP_SIGNALS)


def process_names(settings: Settings) -> tuple[str, ...]:
    """The processes to start: ingest is two, unless a role is set."""
    return SERVICES if settings.ingest_role else (DERIVE, *SERVICES)


def choose_ports(settings: Settings) -> dict[str, int]:
    """A port per process: the one that is set, or a free one where that is taken or 0.

    Raises `Misconfigured` where the host is none of this machine's.
    """
    chosen: dict[str, int] = {}
    for name in (*process_names(settings), GRPC):
        taken = {settings.postgres_port, settings.nats_port, *chosen.values()}
        chosen[name] = _choose_port(_configured_port(settings, name), settings.host, taken)
    return chosen


def check_host(settings: Settings) -> None:
    """Raises `Misconfigured` where the host is none of this machine's."""
    _choose_port(0, settings.host, set())


def _choose_port(preferred: int, host: str, taken: set[int]) -> int:
    try:
        return ports.choose_port(preferred, host, taken)
    except OSError as error:
        raise Misconfigured("host", f"cannot listen on {host}: {error.strerror}") from None


def find_moved_ports(settings: Settings, chosen: Mapping[str, int]) -> list[str]:
    """Services that did not get the port that is set."""
    return [
        name for name, port in chosen.items() if _configured_port(settings, name) not in {0, port}
    ]


def build_environment(settings: Settings, chosen: Mapping[str, int]) -> dict[str, str]:
    """What every service process is told: the settings that were given, and where services are."""
    explicit = {name: getattr(settings, name) for name in settings.model_fields_set}
    variables = {PREFIX + key.upper(): _to_text(value) for key, value in _shared_settings(explicit)}
    variables |= {
        f"{PREFIX}{process.upper()}_PORT": str(port)
        for process, port in chosen.items()
        if process not in _SERVED_BY_PROCESS
    }
    variables |= {
        "REVERIE_HOME": str(settings.home),
        "REVERIE_SHUTDOWN_TIMEOUT": str(min(settings.shutdown_timeout, SHUTDOWN_GRACE)),
        "REVERIE_LIFELINE": "1",
    }
    return _inherited_environment() | variables


def _inherited_environment() -> dict[str, str]:
    """What is read before any setting is."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return inherited | {"PYTHONUNBUFFERED": "1"}


def start_forker(settings: Settings, home: Home) -> Forker | None:
    """What forks the services, with what they need imported; None where that cannot be."""
    if not ABLE:
        return None
    also = [] if settings.llm_provider == "none" else [LANGUAGE_MODULE]
    forker = Forker(home.logs / "forker.log", _inherited_environment(), also)
    forker.start()
    return forker


def build_process_environment(
    name: str,
    common: Mapping[str, str],
    chosen: Mapping[str, int],
    servers: ServerConnections,
) -> dict[str, str]:
    """What one process is told beside that: its users of the servers, its role of ingest's two."""
    common = {**common, **servers.environment_for(_served_service(name))}
    if DERIVE not in chosen or _served_service(name) != "ingest":
        return common
    role = {f"{PREFIX}INGEST_ROLE": DERIVE if name == DERIVE else "api"}
    return {**common, **role, f"{PREFIX}INGEST_PORT": str(chosen[name])}


def _shared_settings(explicit: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    return (
        (name, value)
        for name, value in explicit.items()
        if value is not None and name not in WITHHELD_SETTINGS
    )


def _to_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _configured_port(settings: Settings, name: str) -> int:
    return 0 if name in _SERVED_BY_PROCESS else int(getattr(settings, f"{name}_port"))


def read_log_end(home: Home, name: str) -> tuple[Path, str]:
    """The log of a part, and its last lines."""
    log = home.logs / f"{name}.log"
    return log, processes.read_last_lines(log)

"""The four services as child processes on a lifeline.

Their stdin is a pipe whose other end the supervisor alone holds: when the supervisor dies,
however it dies, they read the end of it and shut down by themselves.
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

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.embedded import ports, processes
from reverie.embedded.addresses import DERIVE, GATEWAY, SERVICES
from reverie.embedded.forker import ABLE, Forked, Forker
from reverie.embedded.home import Home, read_note, write_note
from reverie.embedded.tls import Tls
from reverie.runtime.settings import PREFIX, Settings

STOPS = ((signal.SIGTERM, 4.0), (signal.SIGKILL, 0.5))
GRACE = 3.0
"""Seconds that requests in flight get at shutdown, so that all ends within ten."""

GRPC = "grpc"
"""The gateway's other door, which has a port of its own."""
KEPT_BACK = {
    *("api_key", "tls", "tls_cert", "tls_key", "grpc_cert", "grpc_key"),
    *("database_url", "migrate_database_url", "reader_database_url"),
    *("nats_url", "nats_creds", "nats_nkey"),
}
"""Settings that no service needs, or not every one."""
LANGUAGE = "reverie.inference.wire"
"""What asks language models: it takes as long to import as all else."""
_SERVES = {DERIVE: "ingest"}
"""What a process serves, where it is not called by that."""


@dataclass(frozen=True)
class Servers:
    """Where the servers are for each service: as a user that may do what it needs, and no more."""

    database_url: str = field(repr=False)
    reader_url: str | None = field(repr=False)
    bus_of: Callable[[str], str | None] = field(repr=False)
    tls: Tls | None = None
    bus_files: Mapping[str, Path | None] = field(default_factory=dict)

    def told_to(self, service: str) -> dict[str, str]:
        """What a service is told of them."""
        given = {
            "DATABASE_URL": self.database_url,
            "READER_DATABASE_URL": self.reader_url if service == GATEWAY else None,
        }
        if service != GATEWAY:
            files = {name: str(path) for name, path in self.bus_files.items() if path}
            given |= {"NATS_URL": self.bus_of(service), **files}
        if self.tls is not None:
            given |= self.tls.told_to(service)
        return {PREFIX + name: url for name, url in given.items() if url}


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
        self._child = self._forked() or self._spawned()
        pids = read_note(self._home, "services")
        write_note(self._home, "services", pids | {self.name: self._child.pid})

    def _forked(self) -> Forked | None:
        if self._forker is not None and self._forker.running():
            with suppress(Unavailable):
                served = _served(self.name)
                return self._forker.fork(served, self._environment, self.log, self._stdin)
        return None

    def _spawned(self) -> processes.Child:
        command = [sys.executable, "-P", "-m", "reverie.cli.main", "serve", _served(self.name)]
        return processes.spawn(command, self.log, env=self._environment, stdin=self._stdin)

    def running(self) -> bool:
        """Whether the process is there."""
        return self._child is not None and self._child.poll() is None

    def stop(self) -> None:
        """End it in order; at most 4.5 seconds."""
        if self._child is not None:
            processes.stop(self._child.pid, STOPS, self._child)


def _served(name: str) -> str:
    return _SERVES.get(name, name)


def end_leftovers(home: Home) -> None:
    """End services of a supervisor that was killed; they may still be on their way out."""
    left = {
        name: pid
        for name, pid in read_note(home, "services").items()
        if isinstance(pid, int) and processes.runs(pid, "reverie", "serve", _served(name))
    }
    for pid in left.values():
        processes.stop(pid, [(signal.SIGTERM, 0.01)])
    for pid in left.values():
        processes.stop(pid, STOPS)


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
        chosen[name] = _choose(_port(settings, name), settings.host, taken)
    return chosen


def check_host(settings: Settings) -> None:
    """Raises `Misconfigured` where the host is none of this machine's."""
    _choose(0, settings.host, set())


def _choose(preferred: int, host: str, taken: set[int]) -> int:
    try:
        return ports.choose(preferred, host, taken)
    except OSError as error:
        raise Misconfigured("host", f"cannot listen on {host}: {error.strerror}") from None


def moved(settings: Settings, chosen: Mapping[str, int]) -> list[str]:
    """Services that did not get the port that is set."""
    return [n for n, port in chosen.items() if _port(settings, n) not in {0, port}]


def environment(settings: Settings, chosen: Mapping[str, int]) -> dict[str, str]:
    """What every service process is told: the settings that were given, and where services are."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    told = {PREFIX + k.upper(): _text(v) for k, v in _told(given)}
    told |= {f"{PREFIX}{n.upper()}_PORT": str(p) for n, p in chosen.items() if n not in _SERVES}
    told |= {
        "REVERIE_HOME": str(settings.home),
        "REVERIE_SHUTDOWN_SECONDS": str(min(settings.shutdown_seconds, GRACE)),
        "REVERIE_LIFELINE": "1",
    }
    return _surroundings() | told


def _surroundings() -> dict[str, str]:
    """What is read before any setting is."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    return own | {"PYTHONUNBUFFERED": "1"}


def started_forker(settings: Settings, home: Home) -> Forker | None:
    """What forks the services, with what they need imported; None where that cannot be."""
    if not ABLE:
        return None
    also = [] if settings.llm_provider == "none" else [LANGUAGE]
    forker = Forker(home.logs / "forker.log", _surroundings(), also)
    forker.start()
    return forker


def own_environment(
    name: str,
    common: Mapping[str, str],
    chosen: Mapping[str, int],
    servers: Servers,
) -> dict[str, str]:
    """What one process is told beside that: its users of the servers, its role of ingest's two."""
    common = {**common, **servers.told_to(_served(name))}
    if DERIVE not in chosen or _served(name) != "ingest":
        return common
    role = {f"{PREFIX}INGEST_ROLE": DERIVE if name == DERIVE else "api"}
    return {**common, **role, f"{PREFIX}INGEST_PORT": str(chosen[name])}


def _told(given: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    return ((k, v) for k, v in given.items() if v is not None and k not in KEPT_BACK)


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _port(settings: Settings, name: str) -> int:
    return 0 if name in _SERVES else int(getattr(settings, f"{name}_port"))


def last_words(home: Home, name: str) -> tuple[Path, str]:
    """The log of a part, and its last lines."""
    log = home.logs / f"{name}.log"
    return log, processes.last_lines(log)

"""Adapts the embedded Postgres and NATS to the supervisor's process interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from reverie.embedded import processes
from reverie.embedded.home import Home
from reverie.embedded.servers import nats, postgres


class ServerInstance(Protocol):
    """A running server."""

    @property
    def port(self) -> int:
        """The port that it listens on."""


Instance = TypeVar("Instance", bound=ServerInstance)


@dataclass(eq=False)
class EmbeddedServer(Generic[Instance]):
    """An embedded server that a supervisor starts and stops.

    `start_on` adopts or starts the server; its port may be 0 for any free one.
    """

    name: str
    configured_port: int
    start_on: Callable[[int], Instance]
    stop_instance: Callable[[Instance], None]
    is_instance_running: Callable[[Instance], bool]
    find_instance: Callable[[], Instance | None]
    _server: Instance | None = None

    @property
    def server(self) -> Instance:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self.server.port

    @property
    def moved_port(self) -> int | None:
        """The port that it listens on, if that is not the configured one."""
        return None if self.configured_port in {0, self.port} else self.port

    def inherit(self) -> None:
        """Takes on the server that this process started before it executed another program."""
        self._server = self.find_instance()

    def start(self) -> None:
        """Adopts or starts it."""
        # Services know the port of the first start: a restart must use it again.
        self._server = self.start_on(self._server.port if self._server else self.configured_port)

    def is_running(self) -> bool:
        """Whether its process is running."""
        return self._server is not None and self.is_instance_running(self._server)

    def stop(self) -> None:
        """Shuts it down cleanly."""
        if self._server is not None:
            self.stop_instance(self._server)


def build_postgres(
    home: Home, port: int, binaries: Path | None
) -> EmbeddedServer[postgres.PostgresInstance]:
    """The embedded Postgres of a home folder."""

    def start(port: int) -> postgres.PostgresInstance:
        return postgres.start(postgres.PostgresSpec(home, port, bin=binaries))

    def find() -> postgres.PostgresInstance | None:
        found = postgres.find(home)
        return found and replace(found, child=processes.InheritedChild(found.pid))

    return EmbeddedServer("postgres", port, start, postgres.stop, postgres.is_running, find)


def build_nats(home: Home, port: int, binary: Path | None) -> EmbeddedServer[nats.NatsInstance]:
    """The embedded NATS of a home folder."""

    def start(port: int) -> nats.NatsInstance:
        return nats.start(nats.NatsSpec(home, port, bin=binary))

    def find() -> nats.NatsInstance | None:
        found = nats.find(home)
        return found and replace(found, child=processes.InheritedChild(found.pid))

    return EmbeddedServer("nats", port, start, nats.stop, nats.is_running, find)

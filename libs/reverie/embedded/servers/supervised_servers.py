"""Adapts the embedded Postgres and NATS to the supervisor's process interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from reverie.embedded import processes
from reverie.embedded.home import Home
from reverie.embedded.servers import nats, postgres

Instance = TypeVar("Instance", postgres.PostgresInstance, nats.NatsInstance)


@dataclass(eq=False)
class EmbeddedServer(Generic[Instance]):
    """An embedded server that a supervisor starts and stops.

    `start_on` adopts or starts the server; its port may be 0 for any free one.
    """

    name: str
    configured_port: int
    start_on: Callable[[int], Instance]
    stop_instance: Callable[[Instance], None]
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
        found = self.find_instance()
        if found is not None:
            found = replace(found, child=processes.InheritedChild(found.pid))
        self._server = found

    def start(self) -> None:
        """Adopts or starts it."""
        # Services know the port of the first start: a restart must use it again.
        self._server = self.start_on(self._server.port if self._server else self.configured_port)

    def is_running(self) -> bool:
        """Whether its process is running."""
        if self._server is None:
            return False
        child = self._server.child
        return child.poll() is None if child else processes.is_alive(self._server.pid)

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

    return EmbeddedServer("postgres", port, start, postgres.stop, partial(postgres.find, home))


def build_nats(home: Home, port: int, binary: Path | None) -> EmbeddedServer[nats.NatsInstance]:
    """The embedded NATS of a home folder."""

    def start(port: int) -> nats.NatsInstance:
        return nats.start(nats.NatsSpec(home, port, bin=binary))

    return EmbeddedServer("nats", port, start, nats.stop, partial(nats.find, home))

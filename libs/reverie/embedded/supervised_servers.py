"""Adapts the embedded Postgres and NATS to the supervisor's process interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


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
    _server: Instance | None = None

    @property
    def server(self) -> Instance:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    @property
    def moved_port(self) -> int | None:
        """The port that it listens on, if that is not the configured one."""
        port = self.server.port
        return None if self.configured_port in {0, port} else port

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

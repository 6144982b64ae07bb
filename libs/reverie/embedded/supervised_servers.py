"""Adapts the embedded Postgres and NATS to the supervisor's process interface."""

from __future__ import annotations

from dataclasses import replace

from reverie.embedded import nats, postgres
from reverie.embedded.home import Home
from reverie.runtime.settings.settings import Settings


class SupervisedPostgres:
    """The embedded Postgres."""

    name = "postgres"

    def __init__(self, settings: Settings, home: Home) -> None:
        self._configured_port = settings.postgres_port
        self._spec = postgres.PostgresSpec(home, settings.postgres_port, bin=settings.postgres_bin)
        self._server: postgres.PostgresInstance | None = None

    @property
    def server(self) -> postgres.PostgresInstance:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    @property
    def moved_port(self) -> int | None:
        """The port that it listens on, if that is not the configured one."""
        port = self.server.port
        return None if self._configured_port in {0, port} else port

    def start(self) -> None:
        """Adopt or start it."""
        self._server = postgres.start(self._spec)
        # Services know this port: a restart must use it again.
        self._spec = replace(self._spec, port=self._server.port)

    def is_running(self) -> bool:
        """Whether its process is running."""
        return self._server is not None and postgres.is_running(self._server)

    def stop(self) -> None:
        """Shuts it down cleanly."""
        if self._server is not None:
            postgres.stop(self._server)


class SupervisedNats:
    """The embedded NATS."""

    name = "nats"

    def __init__(self, settings: Settings, home: Home) -> None:
        self._configured_port = settings.nats_port
        self._spec = nats.NatsSpec(home, settings.nats_port, bin=settings.nats_bin)
        self._server: nats.NatsInstance | None = None

    @property
    def server(self) -> nats.NatsInstance:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    @property
    def moved_port(self) -> int | None:
        """The port that it listens on, if that is not the configured one."""
        port = self.server.port
        return None if self._configured_port in {0, port} else port

    def start(self) -> None:
        """Adopt or start it."""
        self._server = nats.start(self._spec)
        self._spec = replace(self._spec, port=self._server.port)

    def is_running(self) -> bool:
        """Whether its process is running."""
        return self._server is not None and nats.is_running(self._server)

    def stop(self) -> None:
        """Shuts it down cleanly."""
        if self._server is not None:
            nats.stop(self._server)

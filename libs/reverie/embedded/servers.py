"""The embedded servers as parts that a supervisor starts, watches and stops."""

from __future__ import annotations

from dataclasses import replace

from reverie.embedded import nats, postgres
from reverie.embedded.home import Home
from reverie.runtime.settings import Settings


class PostgresPart:
    """The embedded Postgres."""

    name = "postgres"

    def __init__(self, settings: Settings, home: Home) -> None:
        self._spec = postgres.PostgresSpec(home, settings.postgres_port, bin=settings.postgres_bin)
        self._server: postgres.Postgres | None = None

    @property
    def server(self) -> postgres.Postgres:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    def start(self) -> None:
        """Adopt or start it."""
        self._server = postgres.start(self._spec)
        # Services know this port: a restart must come back on it.
        self._spec = replace(self._spec, port=self._server.port)

    def running(self) -> bool:
        """Whether its process is there."""
        return self._server is not None and postgres.running(self._server)

    def stop(self) -> None:
        """End it in order."""
        if self._server is not None:
            postgres.stop(self._server)


class NatsPart:
    """The embedded NATS."""

    name = "nats"

    def __init__(self, settings: Settings, home: Home) -> None:
        self._spec = nats.NatsSpec(home, settings.nats_port, bin=settings.nats_bin)
        self._server: nats.Nats | None = None

    @property
    def server(self) -> nats.Nats:
        """The server; it has been started."""
        assert self._server is not None
        return self._server

    def start(self) -> None:
        """Adopt or start it."""
        self._server = nats.start(self._spec)
        self._spec = replace(self._spec, port=self._server.port)

    def running(self) -> bool:
        """Whether its process is there."""
        return self._server is not None and nats.running(self._server)

    def stop(self) -> None:
        """End it in order."""
        if self._server is not None:
            nats.stop(self._server)

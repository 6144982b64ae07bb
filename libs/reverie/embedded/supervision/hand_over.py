"""Replaces the program that started everything by a small one that watches it.

To start takes settings, migrations and clients, some 40 MB; to watch takes none of them. The
process stays the same: it keeps its children, its lock and its end of the services' pipe.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from reverie.embedded.home import Home
from reverie.embedded.servers.supervised_servers import EmbeddedServer, build_nats, build_postgres
from reverie.embedded.supervision.process_watch import STOP_SIGNALS, Certificate
from reverie.embedded.supervision.service_process import ServiceProcess


@dataclass(frozen=True)
class HandOver:
    """What runs, as plain values.

    Open descriptors, which stay open: `lock_fd` holds the home folder. The services live until
    `lifeline_fd` is closed, the end of the pipe whose other end, `stdin_fd`, is their standard
    input. `servers`: the port and the folder of binaries of each embedded one, in start order.
    `caller`: what the command that started everything needs besides.
    """

    home: str
    lock_fd: int
    lifeline_fd: int
    stdin_fd: int
    environments: Mapping[str, Mapping[str, str]]
    servers: Mapping[str, tuple[int, str | None]]
    certificate: tuple[str, tuple[str, ...]] | None
    caller: Mapping[str, Any]

    async def execute(self, module: str, stop: asyncio.Event) -> NoReturn:
        """Runs a module in place of this program; no signal to stop is lost on the way.

        The module calls `receive` with its first argument, then `unblock_stop_signals`.
        """
        # First, because a disk may be full: to stop everything then takes the threads.
        state = TemporaryFile(dir=Home(Path(self.home)).run)  # noqa: SIM115
        state.write(json.dumps(asdict(self)).encode())
        state.seek(0)
        # Threads would take a signal that this one blocks.
        await asyncio.get_running_loop().shutdown_default_executor()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        # The event loop learns of what came before from a pipe, some steps later.
        await asyncio.sleep(0.01)
        if stop.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
        for descriptor in (state.fileno(), self.lock_fd, self.lifeline_fd, self.stdin_fd):
            os.set_inheritable(descriptor, True)
        sys.stdout.flush()
        sys.stderr.flush()
        arguments = [sys.executable, "-P", "-m", module, str(state.fileno())]
        os.execv(sys.executable, arguments)  # noqa: S606

    def inherited_services(self) -> list[ServiceProcess]:
        """The processes of services."""
        home = Home(Path(self.home))
        services = [
            ServiceProcess(name, home, environment, self.stdin_fd)
            for name, environment in self.environments.items()
        ]
        for service in services:
            service.inherit()
        return services

    def inherited_servers(self) -> list[EmbeddedServer[Any]]:
        """The embedded servers."""
        home = Home(Path(self.home))
        servers: list[EmbeddedServer[Any]] = []
        for name, (port, place) in self.servers.items():
            build = build_postgres if name == "postgres" else build_nats
            servers.append(build(home, port, Path(place) if place else None))
        for server in servers:
            server.inherit()
        return servers

    @property
    def own_certificate(self) -> Certificate | None:
        """The machine's own certificate."""
        return (Path(self.certificate[0]), self.certificate[1]) if self.certificate else None


def receive(descriptor: str) -> HandOver:
    """What the program before handed over."""
    with open(int(descriptor), "rb") as file:
        received = HandOver(**json.load(file))
    # Children are given what they need of these by name.
    for kept in (received.lock_fd, received.lifeline_fd, received.stdin_fd):
        os.set_inheritable(kept, False)
    return received


def unblock_stop_signals() -> None:
    """To be called once signals are handled."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

"""Starts the service processes as children that end when the supervisor dies.

Their stdin is a pipe whose other end belongs to the supervisor alone. However the supervisor dies,
they read end of file and shut down.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from reverie.embedded import processes
from reverie.embedded.home import Home, read_run_file, write_run_file

STOP_SIGNALS = ((signal.SIGTERM, 4.0), (signal.SIGKILL, 0.5))


class ServiceProcess:
    """One process of services; may be started again after its end."""

    def __init__(self, name: str, home: Home, environment: Mapping[str, str], stdin: int) -> None:
        self.name = name
        self.log = home.logs / f"{name}.log"
        self._home = home
        self.environment = environment
        self._stdin = stdin
        self._child: processes.Child | None = None

    def start(self) -> None:
        """Start the process; it is not ready yet."""
        command = [sys.executable, "-P", "-m", "reverie.cli.app.main", "serve", self.name]
        self._child = processes.spawn(command, self.log, env=self.environment, stdin=self._stdin)
        pids = read_run_file(self._home, "services")
        write_run_file(self._home, "services", pids | {self.name: self._child.pid})

    def inherit(self) -> None:
        """Takes on the process that this one started before it executed another program."""
        pid = read_run_file(self._home, "services")[self.name]
        self._child = processes.InheritedChild(pid)

    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._child is not None and self._child.poll() is None

    def stop(self) -> None:
        """End it in order; at most 4.5 seconds."""
        if self._child is not None:
            processes.stop(self._child.pid, STOP_SIGNALS, self._child)


def stop_leftovers(home: Home) -> None:
    """End processes of a supervisor that was killed; they may still be on their way out."""
    leftovers = [
        pid
        for name, pid in read_run_file(home, "services").items()
        if isinstance(pid, int) and processes.is_running(pid, "reverie", "serve", name)
    ]
    for pid in leftovers:
        processes.stop(pid, [(signal.SIGTERM, 0.01)])
    for pid in leftovers:
        processes.stop(pid, STOP_SIGNALS)


def read_log_end(home: Home, name: str) -> tuple[Path, str]:
    """The log of a part, and its last lines."""
    log = home.logs / f"{name}.log"
    return log, processes.read_last_lines(log)

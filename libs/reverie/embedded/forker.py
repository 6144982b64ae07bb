"""Forks service processes from one process that has already imported their code."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from reverie.domain.core.errors import Unavailable
from reverie.embedded import processes

ABLE = sys.platform == "linux"
"""Elsewhere what the system's own libraries hold does not outlive a fork."""
PATIENCE = 40.0
"""Seconds for an answer: the first comes once all is imported."""
LONGEST = 1 << 17
"""Bytes of a question at most, the environment of a service included."""
_LOOK = 0.01


class Forker:
    """The process, as a part to be watched. Services live on without it."""

    name = "forker"

    def __init__(self, log: Path, env: Mapping[str, str], also: Sequence[str] = ()) -> None:
        self._log = log
        self._env = dict(env)
        self._also = list(also)
        self._process: processes.Child | None = None
        self._channel: socket.socket | None = None
        self._alone = threading.Lock()

    def start(self) -> None:
        """Start it; it answers once it has imported what services are made of."""
        self.stop()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE)
        command = [sys.executable, "-P", "-m", "reverie.cli.app.forking", *self._also]
        with its:
            self._process = processes.spawn(command, self._log, env=self._env, stdin=its.fileno())
        self._channel = ours

    @property
    def pid(self) -> int:
        """The number of its process; it has been started."""
        assert self._process is not None
        return self._process.pid

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End it; its children stay."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None and self.is_running():
            processes.stop(self._process.pid, [(signal.SIGKILL, 1.0)], self._process)

    def fork(self, service: str, env: Mapping[str, str], log: Path, stdin: int) -> Forked:
        """A service in that environment and no other, in a session of its own.

        Raises `Unavailable` where the forker does not answer; it is ended then.
        """
        out = processes.open_log(log)
        try:
            pid = self._ask({"service": service, "env": dict(env)}, [stdin, out])
        finally:
            os.close(out)
        if pid is None:
            raise Unavailable("the forker", f"it forks no more: see {self._log}")
        return Forked(pid, self)

    def reaped(self, pid: int) -> int | None:
        """The exit code of a child that ended; None while it runs. Raises `Unavailable`."""
        return self._ask({"ended": pid}, [])

    def _ask(self, asked: Mapping[str, object], handed: Sequence[int]) -> int | None:
        with self._alone:
            try:
                if self._channel is None or not self.is_running():
                    raise BrokenPipeError
                question = json.dumps(asked).encode()
                socket.send_fds(self._channel, [question], handed)
                answer: int | None = json.loads(self._channel.recv(LONGEST))
            except (OSError, ValueError) as error:
                self.stop()
                raise Unavailable("the forker", f"{error}: see {self._log}") from None
        return answer


class Forked:
    """A process that a forker started."""

    def __init__(self, pid: int, forker: Forker) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forker = forker
        with suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def poll(self) -> int | None:
        """Its exit code; None while it runs. -1 where the forker ended before it could tell."""
        if self.returncode is None and not self._lives():
            try:
                self.returncode = self._forker.reaped(self.pid)
            except Unavailable:
                self.returncode = -1
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; its exit code. Raises `TimeoutExpired` as that of a `Popen` does."""
        begun = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() > begun + timeout:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_LOOK)
        return code

    def _lives(self) -> bool:
        try:
            # Of another process that took its number by now it knows.
            return bool(
                self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
            )
        except (AttributeError, psutil.NoSuchProcess):
            return False

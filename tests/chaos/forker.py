"""A process that has imported the services and forks them, so that each is there at once.

`python -m tests.chaos.forker` takes a line of JSON for each: a service with its environment and
its log, to which it answers the process id, or the id of one that ends, to which it answers the
exit code. It ends with its input; who was started is the caller's to end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from reverie.domain.redaction import redact
from reverie.dream import app as dream
from reverie.embedded.processes import alive
from reverie.inference import wire
from reverie.ingest import app as ingest
from reverie.runtime.service import serve
from reverie.runtime.setting_sources import load_settings
from reverie.staleness import app as staleness

ROOT = Path(__file__).parents[2]
SERVICES = {"dream": dream, "ingest": ingest, "staleness": staleness}
LOADED = (wire,)
"""What a worker would else import when it first needs it."""


@dataclass
class Forker:
    """Starts services and kills them."""

    process: subprocess.Popen[str]
    living: set[int] = field(default_factory=set)
    _alone: threading.Lock = field(default_factory=threading.Lock)

    async def start(self, service: str, environment: Mapping[str, str], log: Path) -> Forked:
        """A service in this environment and no other."""
        asked = {"service": service, "environment": dict(environment), "log": str(log)}
        pid = await asyncio.to_thread(self._ask, asked)
        self.living.add(pid)
        return Forked(self, pid)

    def kill(self, pid: int) -> None:
        """kill -9."""
        self.living.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    async def ended(self, pid: int) -> int:
        """Waits until one ends that was told to, and answers its exit code; once for each."""
        code = await asyncio.to_thread(self._ask, {"ends": pid})
        self.living.discard(pid)
        return code

    def _ask(self, asked: Mapping[str, object]) -> int:
        with self._alone:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            return int(self.process.stdout.readline())


@dataclass
class Forked:
    """A process that a forker started."""

    forker: Forker
    pid: int
    _code: int | None = None

    @property
    def returncode(self) -> int | None:
        """None while it runs; its exit code once that was waited for, else -1."""
        return -1 if self._code is None and not alive(self.pid) else self._code

    def kill(self) -> None:
        """kill -9."""
        self.forker.kill(self.pid)

    def terminate(self) -> None:
        """Tells it to stop."""
        os.kill(self.pid, signal.SIGTERM)

    async def wait(self) -> int:
        """Waits for its end; its exit code."""
        if self._code is None:
            self._code = await self.forker.ended(self.pid)
        return self._code


@contextmanager
def forking() -> Iterator[Forker]:
    """A forker; at the end every process of it is killed."""
    command = [sys.executable, "-m", "tests.chaos.forker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        made = Forker(process)
        try:
            yield made
        finally:
            for pid in list(made.living):
                made.kill(pid)


def main() -> None:
    """Forks a service for each line that names one."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "ends" in asked:
            _, status = os.waitpid(asked["ends"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(_work(asked["service"], asked["environment"], asked["log"]))
        print(pid, flush=True)


def _work(service: str, environment: Mapping[str, str], log: str) -> int:
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDWR)
    for place, fd in ((0, nothing), (1, nothing), (2, written)):
        os.dup2(fd, place)
    # One that is not among the imported is imported by the process that serves it.
    opened = (SERVICES.get(service) or import_module(f"reverie.{service}.app")).open_service
    return serve(opened, load_settings({}), service, lambda text: redact(text).text)


if __name__ == "__main__":
    main()

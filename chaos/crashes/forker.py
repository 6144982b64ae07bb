"""The forker of `reverie up`, for services that tests kill."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reverie.embedded import forker as product
from reverie.embedded.service_processes import LANGUAGE_MODULE
from reverie.testing.servers import TestRun


@dataclass
class Forker:
    """Starts services and kills them."""

    made: product.Forker
    living: set[int] = field(default_factory=set)

    async def start(self, service: str, environment: Mapping[str, str], log: Path) -> Forked:
        """A service in this environment and no other."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            told = service, environment, log, nothing
            started = await asyncio.to_thread(self.made.fork, *told)
        finally:
            os.close(nothing)
        self.living.add(started.pid)
        return Forked(self, started)

    def kill(self, pid: int) -> None:
        """kill -9."""
        self.living.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Forked:
    """A process that a forker started."""

    forker: Forker
    process: product.Forked

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; else its exit code."""
        return self.process.poll()

    def kill(self) -> None:
        """kill -9."""
        self.forker.kill(self.pid)

    def terminate(self) -> None:
        """Tells it to stop."""
        os.kill(self.pid, signal.SIGTERM)

    async def wait(self) -> int:
        """Waits for its end; its exit code."""
        code = await asyncio.to_thread(self.process.wait)
        self.forker.living.discard(self.pid)
        return code


@contextmanager
def forking(test_run: TestRun) -> Iterator[Forker]:
    """A forker; at the end every process of it is killed."""
    log = test_run.new_folder("forker") / "forker.log"
    made = Forker(product.Forker(log, os.environ, [LANGUAGE_MODULE]))
    made.made.start()
    try:
        yield made
    finally:
        for pid in list(made.living):
            made.kill(pid)
        made.made.stop()

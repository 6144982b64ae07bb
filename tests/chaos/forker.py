"""A process that has imported the dream service and forks workers, so that each is there at once.

`python -m tests.chaos.forker` takes the settings of a worker as a line of JSON and answers its
process id. It ends with its input; the workers are the caller's to end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reverie.dream import app
from reverie.inference import wire
from reverie.runtime.service import serve
from reverie.runtime.settings import Settings

ROOT = Path(__file__).parents[2]
LOADED = (app, wire)
"""What a worker would else import when it first needs it."""


@dataclass
class Forker:
    """Starts workers and kills them."""

    process: Process
    living: set[int] = field(default_factory=set)

    async def start(self, settings: Mapping[str, object]) -> int:
        """A worker's process id."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(settings).encode() + b"\n")
        pid = int(await self.process.stdout.readline())
        self.living.add(pid)
        return pid

    def kill(self, pid: int) -> None:
        """kill -9."""
        self.living.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def forker() -> AsyncIterator[Forker]:
    """A forker; at the end every worker is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.forker", stdin=PIPE, stdout=PIPE, cwd=ROOT
    )
    made = Forker(process)
    try:
        yield made
    finally:
        for pid in list(made.living):
            made.kill(pid)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def main() -> None:
    """Forks a worker for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            os._exit(_work(json.loads(line)))
        print(pid, flush=True)


def _work(asked: dict[str, object]) -> int:
    return serve(app.open_service, Settings(**asked), "dream", str)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

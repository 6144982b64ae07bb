"""The process that forks the services: `python -P -m reverie.cli.app.forking [MODULE...]`."""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from setproctitle import setproctitle

from reverie.cli.app.main import main as command
from reverie.embedded.forker import LONGEST

MODULES = (
    "reverie.cli.operate.lifecycle",
    *(f"reverie_services.{name}.app" for name in ("ingest", "recall", "dream", "staleness")),
)


def main() -> None:
    """Forks a service for each that is asked for."""
    setproctitle("reverie forker")
    for name in (*MODULES, *sys.argv[1:]):
        import_module(name)
    # What is there now stays as it is: looked through, each child would have its own copy of it.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as channel:
        asked = _asked(channel)
    if asked is not None:
        _become(asked)
        command()


def _asked(channel: socket.socket) -> Mapping[str, Any] | None:
    """In each child what is asked of it; None in the forker, once nobody asks any more."""
    while True:
        question, handed, _, _ = socket.recv_fds(channel, LONGEST, 2)
        if not question:
            return None
        asked: Mapping[str, Any] = json.loads(question)
        if "ended" in asked:
            channel.send(json.dumps(_exit_code(asked["ended"])).encode())
            continue
        pid = os.fork()
        if pid == 0:
            os.dup2(handed[0], 0)
            os.dup2(handed[1], 1)
            os.dup2(handed[1], 2)
        for fd in handed:
            os.close(fd)
        if pid == 0:
            return asked
        channel.send(json.dumps(pid).encode())


def _exit_code(pid: int) -> int | None:
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(asked: Mapping[str, Any]) -> None:
    """As if it had been started by itself."""
    os.setsid()
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = ["reverie", "serve", asked["service"]]
    setproctitle(f"{sys.executable} -P -m reverie.cli.app.main serve {asked['service']}")


if __name__ == "__main__":
    main()

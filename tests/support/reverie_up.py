"""Starts `reverie up` as a user does, waits for it, and stops it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped, unused-ignore]
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from reverie.embedded.privileges import is_reachable
from reverie.embedded.processes import is_alive
from reverie.testing.models import model_home

ANY_PORT = [
    flag
    for name in ("recall", "ingest", "dream", "staleness", "grpc", "postgres", "nats")
    for flag in ("--set", f"{name}_port=0")
]
NO_MODELS = ["--set", "model_download=false", "--set", "recall_sparse=off"]
"""Beside a folder of models that has none."""
COMMAND = [sys.executable, "-P", "-m", "reverie.cli.app.main"]


def until(true: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until it is true; a failing test otherwise."""
    again = Retrying(
        retry=retry_if_result(lambda held: not held),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.05),
    )
    again(true)


def as_user(name: str) -> list[str]:
    """What to put before a command so that the user runs it; nothing for the present one."""
    entry = pwd.getpwnam(name)
    if entry.pw_uid == os.geteuid():
        return []
    who = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    # An interpreter below root's closed home must be reached; that is the test's need alone.
    python = Path(sys.executable).resolve().parent
    if not is_reachable(python, entry.pw_uid, entry.pw_gid):
        keep = "-all,+dac_read_search"
        who += [f"--inh-caps={keep}", f"--ambient-caps={keep}"]
    return [shutil.which("setpriv") or "setpriv", *who]


class Up:
    """A running `reverie up --json` on a home folder."""

    def __init__(
        self,
        home: Path,
        *flags: str,
        prefix: list[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.prefix = prefix or []
        models = ["--set", f"embedding_model_dir={model_home() / 'models'}"]
        command = [*self.prefix, *COMMAND, "up", "--json", "--home", str(home), *models]
        self.process = subprocess.Popen(
            [*command, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, **(env or {})},
        )

    def ready(self) -> dict[str, Any]:
        """Wait for the addresses. A failing test where they never come."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if line.rstrip() == "}":
                break
        else:
            raise AssertionError(self.process.communicate()[1])
        found: dict[str, Any] = json.loads("".join(lines))
        return found

    def end(self, sent: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send the signal; answers the exit code and what was said on standard error."""
        self.process.send_signal(sent)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said

    def end_by_itself(self) -> tuple[int, str]:
        """Wait for a start that fails; answers the exit code and standard error."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def clean_up(self) -> None:
        """Leave nothing, whatever happened."""
        if self.process.poll() is None:
            self.end()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def pids(self) -> dict[str, int]:
        """The process of every part."""
        notes = self.home / "run"
        services: dict[str, int] = json.loads((notes / "services.json").read_text())
        servers = {
            name: int(json.loads((notes / f"{name}.json").read_text())["pid"])
            for name in ("postgres", "nats")
            if (notes / f"{name}.json").exists()
        }
        return servers | services

    def descendants(self) -> set[int]:
        """All processes below the supervisor, Postgres' own children too."""
        return {p.pid for p in psutil.Process(self.process.pid).children(recursive=True)}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command on the same home folder, as the same user."""
        return subprocess.run(
            [*self.prefix, *COMMAND, *arguments, "--home", str(self.home)],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            timeout=60,
        )


def gone(pids: set[int]) -> bool:
    """Whether none of the processes runs."""
    return not any(is_alive(pid) for pid in pids)


def post(url: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
    """A call with a key; raises for anything but success."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
    return found

"""Measures start-up time from nothing and after `kill -9` of all services.

    python -m benchmarks.speed.restart 3

Seconds by the clock, and processor seconds of all processes below `reverie up`.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped, unused-ignore]

from benchmarks.support.common import parser
from reverie.embedded.probe import fetch_health
from reverie.embedded.processes import is_alive
from tests.support.reverie_up import ANY_PORT, Up, post, until

SETTLED = 11.0
"""Seconds after which a death counts as the first."""
SERVERS = {"postgres", "nats"}


def used(up: Up) -> float:
    """Processor seconds of the supervisor and all below it, the dead it has waited for included."""
    total = 0.0
    for process in (psutil.Process(up.process.pid), *psutil.Process(up.process.pid).children(True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(up: Up, work: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock and of the processors that something takes."""
    before, begun = used(up), time.monotonic()
    work()
    return time.monotonic() - begun, used(up) - before


class RestartTrial:
    """One `reverie up` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        begun = time.monotonic()
        self.up = Up(folder / "home", *ANY_PORT)
        self.addresses = self.up.ready()
        self.cold = time.monotonic() - begun, used(self.up)
        self.key = (folder / "home" / "secrets" / "api_key").read_text().strip()
        self.recall = self.addresses["gateway"]

    def answers(self, wholly: bool = False) -> bool:
        """Whether recall answers, with all of its arms if `wholly`."""
        with suppress(OSError):
            found = post(f"{self.recall}/v1/recall", self.key, {"query": "who keeps the light"})
            return not (wholly and found["degraded"])
        return False

    def all_ready(self) -> bool:
        """Whether every service says so."""
        return all(fetch_health(url).is_ready for url in self.addresses["services"].values())

    def kill(self, names: set[str]) -> None:
        """kill -9 of these services, which are gone then."""
        pids = [pid for name, pid in self.up.pids().items() if name in names]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(map(is_alive, pids)))

    def back(self, names: set[str]) -> dict[str, tuple[float, float]]:
        """What it takes until recall answers, answers wholly, and all are ready."""
        settled = time.monotonic() + SETTLED
        until(lambda: time.monotonic() > settled)
        self.kill(names)
        before, begun, took = used(self.up), time.monotonic(), {}
        for name, held in (
            ("recall answers", self.answers),
            ("recall answers with all its arms", lambda: self.answers(wholly=True)),
            ("all are ready", self.all_ready),
        ):
            until(held)
            took[name] = time.monotonic() - begun, used(self.up) - before
        return took


def main(runs: int) -> None:
    """Prints the medians and the most."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="reverie-restart-") as folder:
            Path(folder).chmod(0o711)
            trial = RestartTrial(Path(folder))
            try:
                services = set(trial.up.pids()) - SERVERS
                found.setdefault("reverie up", []).append(trial.cold)
                for what, killed in (("all services", services), ("serve all", {"all"})):
                    for moment, took in trial.back(killed).items():
                        found.setdefault(f"kill -9 of {what}: {moment}", []).append(took)
            finally:
                trial.up.clean_up()
    for name, each in found.items():
        clock, used_up = zip(*each, strict=True)
        print(
            f"{name:58} {statistics.median(clock):5.1f} s, at most {max(clock):5.1f} s;"
            f" {statistics.median(used_up):5.1f} s of processor time"
        )


if __name__ == "__main__":
    asked = parser(__doc__)
    asked.add_argument("runs", nargs="?", type=int, default=3)
    main(asked.parse_args().runs)

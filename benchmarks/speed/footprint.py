"""Measures the memory of `reverie up` at rest, and how fast a start answers.

    python -m benchmarks.speed.footprint --memories 10000

Memory is PSS: a page that several processes share counts once, in equal parts. Pages that other
programs of the machine share too (the interpreter, libraries) count in part, so measure alone.
`--kept FOLDER` keeps the filled home; the next run with it fills nothing, and starts no fresh home.
"""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped, unused-ignore]

from benchmarks.support import generated_texts
from benchmarks.support.common import parser, show
from reverie.embedded.ports import LOOPBACK, choose_port
from reverie.embedded.probe import fetch_health
from tests.support.reverie_up import ANY_PORT, Up, post, until

BATCH = 250
BUSY_GAUGES = ("reverie_memories_unenriched", "reverie_outbox_waiting", "reverie_bus_lag")
FILL_SECONDS = 3600.0
START_SECONDS = 60.0
PSS_PARTS = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")


class RunningHome:
    """A `reverie up` on a home folder, whose gateway has a port that is known beforehand."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.gateway_port = choose_port(0, LOOPBACK, set())
        self.gateway = f"http://{LOOPBACK}:{self.gateway_port}"
        self._started = time.monotonic()
        port = ("--set", f"recall_port={self.gateway_port}")
        self.up = Up(home, *ANY_PORT, *port)

    def stop(self) -> None:
        """Ends it and waits for the end."""
        self.up.clean_up()

    @property
    def key(self) -> str:
        """The key that the first start made."""
        return (self._home / "secrets" / "api_key").read_text().strip()

    def seconds_until(self, is_reached: Callable[[], bool]) -> float:
        """Seconds from the start of the command until it is so."""
        deadline = self._started + START_SECONDS
        while not is_reached():
            assert time.monotonic() < deadline, "reverie up does not answer"
            time.sleep(0.01)
        return time.monotonic() - self._started

    def is_ready(self) -> bool:
        """Whether the gateway says that it can work."""
        return fetch_health(self.gateway).is_ready

    def recalls(self, *, complete: bool = True) -> bool:
        """Whether a recall is answered, by all retrievers if `complete`."""
        with suppress(OSError):
            body = {"query": generated_texts.question(time.monotonic_ns())}
            answer = post(f"{self.gateway}/v1/recall", self.key, body)
            return not (complete and answer["degraded"])
        return False

    def measure_start(self, title: str) -> list[str]:
        """A row: the seconds until it is ready and until it answers, and those of processors."""
        ready = self.seconds_until(self.is_ready)
        answered = self.seconds_until(lambda: self.recalls(complete=False))
        complete = self.seconds_until(self.recalls)
        self.urls: dict[str, str] = self.up.ready()["services"]
        figures = ready, answered, complete, self.processor_seconds()
        return [title, *(f"{figure:.2f}" for figure in figures)]

    def processes(self) -> dict[str, list[psutil.Process]]:
        """All processes by what they are: the supervisor, its children, Postgres' own."""
        supervisor = psutil.Process(self.up.process.pid)
        groups = {"supervisor": [supervisor]}
        for name, pid in self.up.pids().items():
            process = psutil.Process(pid)
            groups[name] = [process, *process.children(recursive=True)]
        return groups

    def processor_seconds(self) -> float:
        """What all processes that run now have taken of the processors."""
        processes = [process for group in self.processes().values() for process in group]
        times = [process.cpu_times() for process in processes]
        return float(sum(spent.user + spent.system for spent in times))


def fill(home: Path, memories: int) -> list[str]:
    """Starts on a fresh home, writes memories and waits until all is derived; how it started."""
    running = RunningHome(home)
    try:
        row = running.measure_start("a fresh home")
        for first in range(0, memories, BATCH):
            numbers = range(first, min(first + BATCH, memories))
            items = [{"content": generated_texts.memory(number)} for number in numbers]
            post(f"{running.gateway}/v1/remember/batch", running.key, {"items": items})
        until(lambda: not count_waiting(running.urls["ingest"]), FILL_SECONDS)
        return row
    finally:
        running.stop()


def count_waiting(ingest: str) -> float:
    """Memories and events that the slow path has yet to reach."""
    with urllib.request.urlopen(f"{ingest}/metrics", timeout=20) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines()]
    return sum(float(line[1]) for line in lines if line and line[0].startswith(BUSY_GAUGES))


def read_pss(process: psutil.Process) -> list[float]:
    """Megabytes of a process: in all, of its own, of files, of shared memory; 0 once it ended."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return [0.0] * len(PSS_PARTS)
    fields = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
    return [int(fields[part]) / 1000 * 1.024 for part in PSS_PARTS]


def show_memory(title: str, running: RunningHome) -> None:
    """Prints the memory of each process, Postgres and its backends as one line."""
    rows, totals = [], [0.0] * len(PSS_PARTS)
    for name, processes in running.processes().items():
        parts = [sum(each) for each in zip(*map(read_pss, processes), strict=True)]
        totals = [total + part for total, part in zip(totals, parts, strict=True)]
        rows.append([name, len(processes), *(f"{part:.1f}" for part in parts)])
    rows.append(["all", "", *(f"{total:.1f}" for total in totals)])
    show(title, ["PSS in MB", "processes", "all", "own", "files", "shared memory"], rows)


def measure_starts(home: Path, rest: float, starts: int, rows: list[list[str]]) -> None:
    """Starts several times; the last time it also measures the memory, after a rest."""
    for number in range(starts):
        running = RunningHome(home)
        try:
            rows.append(running.measure_start(f"start {number + 1} of a filled home"))
            if number == starts - 1:
                time.sleep(rest)
                show_memory(f"{rest:.0f} s after a start", running)
        finally:
            running.stop()
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    columns = ["", "/ready", "a recall", "a recall by all retrievers", "processor seconds"]
    show(f"Seconds from the start to the first ({load})", columns, rows)


def main(memories: int, rest: float, starts: int, kept: Path | None) -> None:
    """Fills a home, and measures what it takes to run it."""
    with TemporaryDirectory(prefix="reverie-footprint-") as folder:
        home = kept or Path(folder) / "home"
        Path(folder).chmod(0o711)
        rows = [] if (home / "postgres").exists() else [fill(home, memories)]
        measure_starts(home, rest, starts, rows)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--memories", type=int, default=10_000)
    options.add_argument("--rest", type=float, default=60.0, help="seconds before memory is read")
    options.add_argument("--starts", type=int, default=3)
    options.add_argument("--kept", type=Path, help="a home folder that stays")
    asked = options.parse_args()
    main(asked.memories, asked.rest, asked.starts, asked.kept)

"""Runs the system for a long time and reports what grows.

    python -m chaos.soak --minutes 30 --page

Clients of several tenants do what they do under `chaos.run`, without faults and at an even
pace. Prints for each process its memory, open files, threads and tasks over the time with the slope
of the memory, and the connections at Postgres, and with --page puts it into docs/reliability.md;
ends with 1 where something grows, or where a call did not last.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import linear_regression, median
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped, unused-ignore]

from chaos.clients import Client, Log
from chaos.history import Violation
from chaos.report import machine, put, table
from chaos.result import TENANTS
from chaos.run import check_consistency, wait_until_settled
from chaos.system import PROCESSES, System, running_system
from tests.support.tables import rows

SAMPLE_INTERVAL = 5.0
SETTLE_TIMEOUT = 900.0
"""Seconds for what is under way in the end: deriving gives way to whatever else is done."""
MAX_GROWTH = 1.0
"""MB in ten minutes that a process may grow."""
MAX_RATIO = 1.25
"""How many times as many connections, files and tasks there may be at the end as in the middle."""
CACHE_SETTINGS = ("recall_index_mb=0",)
"""What would else fill for hours, up to its bound: off, or full long before growth counts."""
GAUGES = {
    "memory": "process_resident_memory_bytes",
    "files": "process_open_fds",
    "tasks": "reverie_tasks",
}
COUNTS = ("files", "threads", "tasks")
NAMES = ("open files", "threads", "tasks")
THIRD = 3


@dataclass(frozen=True)
class SoakPlan:
    """`clients` of each tenant act for so long, each at most so many times a second.

    Growth counts in the `minutes` after those that caches and pools have to fill (`warm`).
    """

    minutes: float = 30.0
    warm: float = 15.0
    clients: int = 2
    pace: float = 2.0


@dataclass(frozen=True)
class Sample:
    """At so many seconds: what a process says of itself."""

    at: float
    memory: float
    files: float
    tasks: float
    threads: float


@dataclass(frozen=True)
class Process:
    """One of the processes of the services, and where it answers."""

    seen: psutil.Process
    url: str


@dataclass
class SoakResult:
    """What was seen of each process, and how many connections Postgres had."""

    load: SoakPlan
    log: Log = field(default_factory=Log)
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    connections: list[float] = field(default_factory=list)
    wrong: list[Violation] = field(default_factory=list)

    def failures(self) -> list[str]:
        """All that grew or was lost."""
        grown = [
            f"{name} grows by {slope:.1f} MB in ten minutes"
            for name, seen in self.samples.items()
            if (slope := growth(seen, self.load.warm)) > MAX_GROWTH
        ]
        for name, seen in self.samples.items():
            for what in COUNTS:
                counts = [getattr(one, what) for one in seen]
                if _has_increased(counts):
                    grown.append(f"{name} has more {what} in the end: {_format_thirds(counts)}")
        if _has_increased(self.connections):
            grown.append(
                f"Postgres has more connections in the end: {_format_thirds(self.connections)}"
            )
        return [*grown, *map(str, self.wrong), *self.log.unexpected]


def growth(samples: list[Sample], warm: float) -> float:
    """MB in ten minutes by least squares, of the time after the first `warm` minutes."""
    late = [one for one in samples if one.at >= warm * 60]
    if len(late) < 3:
        return 0.0
    slope = linear_regression([s.at for s in late], [s.memory for s in late]).slope
    return float(slope * 600 / 1e6)


def _has_increased(counts: list[float]) -> bool:
    """Whether the last third has clearly more than the middle one."""
    _, middle, last = _medians(counts)
    return last > middle * MAX_RATIO + 2


def _medians(counts: list[float]) -> tuple[float, ...]:
    size = max(len(counts) // THIRD, 1)
    parts = (counts[n * size : (n + 1) * size] for n in range(THIRD))
    return tuple(median(part) if part else 0.0 for part in parts)


def _format_thirds(counts: list[float]) -> str:
    return ", ".join(f"{count:g}" for count in _medians(counts))


async def soak(folder: Path, load: SoakPlan) -> SoakResult:
    """Clients at work for so long, and what was seen meanwhile."""
    found = SoakResult(load)
    # As `reverie up` has it: ingest answers in one process and derives in another.
    running = running_system(folder, TENANTS, settings=CACHE_SETTINGS)
    async with running as system, aiohttp.ClientSession() as http:
        agents = [
            Client(http, system.gateway, key, tenant, n, found.log, Random(f"{tenant}{n}"))
            for tenant, key in system.keys.items()
            for n in range(load.clients)
        ]
        await _run_clients(system, http, agents, found)
        found.wrong = [
            *await wait_until_settled(system, SETTLE_TIMEOUT),
            *await check_consistency(system, http, found.log),
        ]
    return found


async def _run_clients(
    system: System, http: aiohttp.ClientSession, agents: list[Client], found: SoakResult
) -> None:
    began, stop, processes = time.monotonic(), asyncio.Event(), processes_of(system)
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(_run_client(agent, 1 / found.load.pace, stop))
        whole = found.load.warm + found.load.minutes
        while (passed := time.monotonic() - began) < whole * 60:
            await asyncio.sleep(SAMPLE_INTERVAL)
            for name, process in processes.items():
                found.samples[name].append(await _sample(http, process, passed))
            found.connections.append(await asyncio.to_thread(_connections, system))
            _progress(passed, found)
        stop.set()


def processes_of(system: System) -> dict[str, Process]:
    """Those of the services by their names; that of the four is asked at the gateway's port."""
    urls = {"all": system.urls["recall"], "derive": system.urls["derive"]}
    pids = system.up.pids()
    return {name: Process(psutil.Process(pids[name]), urls[name]) for name in PROCESSES}


async def _sample(http: aiohttp.ClientSession, process: Process, at: float) -> Sample:
    """What `/metrics` of a process says, and the system of its threads."""
    async with http.get(f"{process.url}/metrics") as answer:
        text = await answer.text()
    told = {
        what: float(line[1])
        for what, name in GAUGES.items()
        if (line := re.search(rf"^{name} (\S+)$", text, re.M))
    }
    return Sample(at, threads=process.seen.num_threads(), **told)


async def _run_client(agent: Client, pause: float, stop: asyncio.Event) -> None:
    """At most one call in each pause: who is late does not make up for it."""
    while not stop.is_set():
        next_at = time.monotonic() + pause
        await agent.act_at_random()
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))


def _connections(system: System) -> float:
    admin = system.admin_url
    counted = rows(admin, "select count(*) from pg_stat_activity where datname is not null")
    return float(counted[0][0])


def report(found: SoakResult) -> str:
    """What was seen, in Markdown."""
    load = found.load
    lines = table(
        ("process", "MB: first, second, last third", "MB in ten minutes", *NAMES),
        [
            (
                f"serve {name}",
                ", ".join(f"{m / 1e6:.1f}" for m in _medians([one.memory for one in seen])),
                f"{growth(seen, load.warm):+.2f}",
                *(_format_thirds([getattr(one, what) for one in seen]) for what in COUNTS),
            )
            for name, seen in found.samples.items()
        ],
    )
    failures = found.failures()
    return "\n".join(
        [
            f"Load: {found.log.acknowledged:,} operations in {load.warm + load.minutes:g} minutes "
            f"by {load.clients * len(TENANTS)} clients of {len(TENANTS)} tenants. Each figure is "
            f"the median of a third of the time. The slope is that of the last {load.minutes:g} "
            f"minutes, after caches filled; the largest is off (`{'`, `'.join(CACHE_SETTINGS)}`). "
            f"{machine()}; `python -m chaos.soak --minutes {load.minutes:g} --warm {load.warm:g} "
            f"--clients {load.clients} --pace {load.pace:g}`.",
            "",
            *lines,
            "",
            f"Connections at Postgres: {_format_thirds(found.connections)}; "
            f"at most {max(found.connections, default=0):g}.",
            "",
            *([f"- {one}" for one in failures[:50]] or ["Nothing grew, and nothing was lost."]),
        ]
    )


def _progress(passed: float, found: SoakResult) -> None:
    """In one line of a terminal, else a line each minute or so."""
    seen = sys.stderr.isatty()
    if not seen and len(found.connections) % 12 != 1:
        return
    memory = ", ".join(
        f"{name} {all_of[-1].memory / 1e6:.0f}" for name, all_of in found.samples.items()
    )
    line = (
        f"{passed / 60:.1f} of {found.load.warm + found.load.minutes:g} min, "
        f"{found.log.acknowledged} operations; MB: {memory}"
    )
    print(
        f"\r\033[K{line}" if seen else line, end="" if seen else "\n", file=sys.stderr, flush=True
    )


async def _run_until_signal(work: Coroutine[Any, Any, SoakResult]) -> SoakResult:
    """Told to end (SIGTERM, Ctrl-C), what was started is taken down."""
    task = asyncio.ensure_future(work)
    for sent in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sent, task.cancel)
    return await task


def main() -> None:
    """As a command."""
    usual = SoakPlan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="in which it counts")
    parser.add_argument("--warm", type=float, default=usual.warm, help="minutes before those")
    parser.add_argument("--clients", type=int, default=usual.clients, help="of each tenant")
    parser.add_argument("--pace", type=float, default=usual.pace, help="of a client, per second")
    parser.add_argument(
        "--page", action="store_true", help="put the report into docs/reliability.md"
    )
    given = vars(parser.parse_args())
    page = given.pop("page")
    folder = Path(tempfile.mkdtemp(prefix="reverie-soak-"))
    folder.chmod(0o711)
    try:
        found = asyncio.run(_run_until_signal(soak(folder, SoakPlan(**given))))
    except asyncio.CancelledError:
        sys.exit("broken off before its time: nothing is told of it")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(report(found))
    if page:
        put("soak", report(found))
    sys.exit(1 if found.failures() else 0)


if __name__ == "__main__":
    main()

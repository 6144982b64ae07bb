"""Lets the system work for long, and says what grows.

    python -m tests.chaos.soak --minutes 30 --page

Clients of several tenants do what they do under `tests.chaos.run`, without faults. Prints for
each service its memory, open files, threads and tasks over the time with the slope of the memory,
and the connections at Postgres, and with --page puts it into docs/chaos.md; ends with 1 where
something grows, or where a deed did not last.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import linear_regression, median

import aiohttp

from tests.chaos.clients import Client, Log
from tests.chaos.history import Violation
from tests.chaos.report import machine, put, table
from tests.chaos.result import TENANTS
from tests.chaos.run import settled, told
from tests.chaos.system import SERVICES, System, running_system
from tests.tables import rows

EVERY = 5.0
WARM = 0.4
"""The share of the time that passes before growth counts: caches and pools fill first."""
MOST_GROWTH = 1.0
"""MB in ten minutes that a service may grow."""
MORE = 1.25
"""How many times as many connections, files and tasks there may be at the end as in the middle."""
GAUGES = {
    "memory": "process_resident_memory_bytes",
    "files": "process_open_fds",
    "tasks": "reverie_tasks",
}
THIRD = 3


@dataclass(frozen=True)
class Sample:
    """At so many seconds: what a service says of itself."""

    at: float
    memory: float
    files: float
    tasks: float


@dataclass
class Soaked:
    """What was seen of each service, and how many connections Postgres had."""

    minutes: float
    log: Log = field(default_factory=Log)
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    connections: list[float] = field(default_factory=list)
    wrong: list[Violation] = field(default_factory=list)

    def failures(self) -> list[str]:
        """All that grew or was lost."""
        grown = [
            f"{service} grows by {slope:.1f} MB in ten minutes"
            for service, seen in self.samples.items()
            if (slope := growth(seen)) > MOST_GROWTH
        ]
        for service, seen in self.samples.items():
            for what in ("files", "tasks"):
                counts = [getattr(one, what) for one in seen]
                if _more(counts):
                    grown.append(f"{service} has more {what} in the end: {_thirds(counts)}")
        if _more(self.connections):
            grown.append(f"Postgres has more connections in the end: {_thirds(self.connections)}")
        return [*grown, *map(str, self.wrong), *self.log.strange]


def growth(samples: list[Sample]) -> float:
    """MB in ten minutes by least squares, of the time after the first share."""
    late = samples[int(len(samples) * WARM) :]
    if len(late) < 3:
        return 0.0
    slope = linear_regression([s.at for s in late], [s.memory for s in late]).slope
    return float(slope * 600 / 1e6)


def _more(counts: list[float]) -> bool:
    """Whether the last third has clearly more than the middle one."""
    _, middle, last = _medians(counts)
    return last > middle * MORE + 2


def _medians(counts: list[float]) -> tuple[float, ...]:
    size = max(len(counts) // THIRD, 1)
    parts = (counts[n * size : (n + 1) * size] for n in range(THIRD))
    return tuple(median(part) if part else 0.0 for part in parts)


def _thirds(counts: list[float]) -> str:
    return ", ".join(f"{count:g}" for count in _medians(counts))


async def soak(folder: Path, minutes: float, clients: int) -> Soaked:
    """Clients at work for so long, and what was seen meanwhile."""
    found = Soaked(minutes)
    async with running_system(folder, TENANTS) as system, aiohttp.ClientSession() as http:
        agents = [
            Client(http, system.gateway, key, tenant, n, found.log, Random(f"{tenant}{n}"))
            for tenant, key in system.keys.items()
            for n in range(clients)
        ]
        await _worked(system, http, agents, found)
        found.wrong = [*await settled(system), *await told(system, http, found.log)]
    return found


async def _worked(
    system: System, http: aiohttp.ClientSession, agents: list[Client], found: Soaked
) -> None:
    began, over = time.monotonic(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(_acting(agent, over))
        while (passed := time.monotonic() - began) < found.minutes * 60:
            await asyncio.sleep(EVERY)
            for service in SERVICES:
                found.samples[service].append(await _sample(http, system.urls[service], passed))
            found.connections.append(await asyncio.to_thread(_connections, system))
            _progress(passed, found)
        over.set()


async def _sample(http: aiohttp.ClientSession, url: str, at: float) -> Sample:
    """What `/metrics` of a service says."""
    async with http.get(f"{url}/metrics") as answer:
        text = await answer.text()
    told = {
        what: float(line[1])
        for what, name in GAUGES.items()
        if (line := re.search(rf"^{name} (\S+)$", text, re.M))
    }
    return Sample(at, **told)


async def _acting(agent: Client, over: asyncio.Event) -> None:
    while not over.is_set():
        await agent.act()
        await asyncio.sleep(0.05)


def _connections(system: System) -> float:
    admin = system.admin_url
    counted = rows(admin, "select count(*) from pg_stat_activity where datname is not null")
    return float(counted[0][0])


def report(found: Soaked) -> str:
    """What was seen, in Markdown."""
    lines = table(
        ("service", "MB: first, second, last third", "MB in ten minutes", "open files", "tasks"),
        [
            (
                service,
                ", ".join(f"{m / 1e6:.1f}" for m in _medians([one.memory for one in seen])),
                f"{growth(seen):+.2f}",
                _thirds([one.files for one in seen]),
                _thirds([one.tasks for one in seen]),
            )
            for service, seen in found.samples.items()
        ],
    )
    failures = found.failures()
    return "\n".join(
        [
            f"{found.log.acknowledged:,} operations in {found.minutes:g} minutes. Each figure is "
            f"the median of a third of the time; the slope is that of the last "
            f"{1 - WARM:.0%}. {machine()}; `python -m tests.chaos.soak --minutes "
            f"{found.minutes:g}`.",
            "",
            *lines,
            "",
            f"Connections at Postgres: {_thirds(found.connections)}; "
            f"at most {max(found.connections, default=0):g}.",
            "",
            *([f"- {one}" for one in failures[:50]] or ["Nothing grew, and nothing was lost."]),
        ]
    )


def _progress(passed: float, found: Soaked) -> None:
    """In one line of a terminal, else a line each minute or so."""
    seen = sys.stderr.isatty()
    if not seen and len(found.connections) % 12 != 1:
        return
    memory = ", ".join(f"{name} {all_of[-1].memory / 1e6:.0f}" for name, all_of in
                       found.samples.items())  # fmt: skip
    line = f"{passed / 60:.1f} of {found.minutes:g} min, {found.log.acknowledged} operations; MB: "
    print(f"\r\033[K{line}{memory}" if seen else line + memory, end="" if seen else "\n",
          file=sys.stderr, flush=True)  # fmt: skip


def main() -> None:
    """As a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=2, help="of each tenant")
    parser.add_argument("--page", action="store_true", help="put the report into docs/chaos.md")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="reverie-soak-"))
    folder.chmod(0o711)
    try:
        found = asyncio.run(soak(folder, given.minutes, given.clients))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(report(found))
    if given.page:
        put("soak", report(found))
    sys.exit(1 if found.failures() else 0)


if __name__ == "__main__":
    main()

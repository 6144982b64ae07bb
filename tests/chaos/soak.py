"""Lets the system work for long, and says what grows.

    python -m tests.chaos.soak --minutes 30

Clients of several tenants do what they do under `tests.chaos.run`, without faults. Prints for
each service the memory at the end and its slope, its open files and its threads, and the
connections at Postgres; ends with 1 where something grows, or where a deed did not last.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import linear_regression, median

import aiohttp
import psutil  # type: ignore[import-untyped, unused-ignore]

from tests.chaos.clients import Client, Log
from tests.chaos.history import Violation
from tests.chaos.run import TENANTS, settled, told
from tests.chaos.system import SERVICES, System, running_system
from tests.tables import rows

EVERY = 5.0
WARM = 0.4
"""The share of the time that passes before growth counts: caches and pools fill first."""
MOST_GROWTH = 1.0
"""MB in ten minutes that a service may grow."""


@dataclass(frozen=True)
class Sample:
    """At so many seconds: bytes that are resident, open files, threads."""

    at: float
    memory: int
    files: int
    threads: int


def growth(samples: list[Sample]) -> float:
    """MB in ten minutes by least squares, of the time after the first share."""
    late = samples[int(len(samples) * WARM) :]
    if len(late) < 3:
        return 0.0
    slope = linear_regression([s.at for s in late], [s.memory for s in late]).slope
    return float(slope * 600 / 1e6)


async def soak(folder: Path, minutes: float, clients: int) -> int:
    """Prints what was seen; 1 where something grew or was lost."""
    log = Log()
    async with running_system(folder, TENANTS) as system, aiohttp.ClientSession() as http:
        agents = [
            Client(http, system.gateway, key, tenant, number, log, Random(f"{tenant}{number}"))
            for tenant, key in system.keys.items()
            for number in range(clients)
        ]
        samples, connections = await _worked(system, agents, minutes * 60)
        wrong = [*await settled(system), *await told(system, http, log)]
    print(f"{log.acknowledged} operations in {minutes:g} minutes, answers {dict(log.answers)}")
    return _report(samples, connections, wrong)


async def _worked(
    system: System, agents: list[Client], seconds: float
) -> tuple[dict[str, list[Sample]], list[int]]:
    began, samples, connections = time.monotonic(), defaultdict[str, list[Sample]](list), [0]
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(_acting(agent, over))
        while (passed := time.monotonic() - began) < seconds:
            await asyncio.sleep(EVERY)
            for service in SERVICES:
                process = psutil.Process(system.up.pids()[service])
                memory = process.memory_info().rss
                samples[service].append(
                    Sample(passed, memory, process.num_fds(), process.num_threads())
                )
            connections.append(_connections(system))
            _progress(passed, seconds)
        over.set()
    return samples, connections


async def _acting(agent: Client, over: asyncio.Event) -> None:
    while not over.is_set():
        await agent.act()
        await asyncio.sleep(0.05)


def _connections(system: System) -> int:
    admin = system.server.admin_url()
    return int(rows(admin, "select count(*) from pg_stat_activity where datname is not null")[0][0])


def _report(
    samples: dict[str, list[Sample]], connections: list[int], wrong: list[Violation]
) -> int:
    print("\n| service | MB at the end | MB in ten minutes | open files | threads |")
    print("|---|---|---|---|---|")
    grown = []
    for service, seen in samples.items():
        slope, last = growth(seen), seen[-1]
        half = seen[len(seen) // 2]
        print(f"| {service} | {last.memory / 1e6:.1f} | {slope:+.2f} | "
              f"{half.files} to {last.files} | {half.threads} to {last.threads} |")  # fmt: skip
        if slope > MOST_GROWTH:
            grown.append(f"{service} grows by {slope:.1f} MB in ten minutes")
    late = connections[len(connections) // 2 :]
    print(f"\nConnections at Postgres: {median(late):g}, at most {max(connections)}.")
    for failure in [*grown, *map(str, wrong)]:
        print(f"- {failure}")
    return 1 if grown or wrong else 0


def _progress(passed: float, seconds: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{passed / 60:.1f} of {seconds / 60:g} minutes", end="", file=sys.stderr)


def main() -> None:
    """As a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=2, help="of each tenant")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="reverie-soak-"))
    folder.chmod(0o711)
    try:
        code = asyncio.run(soak(folder, given.minutes, given.clients))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()

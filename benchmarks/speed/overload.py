"""Measures latency and refusals at five times the machine's capacity.

`python -m benchmarks.speed.overload [--only writes] [--seconds 12]` brings up a Reverie of its
own and asks it, from a process of its own,

- unloaded: one client, one request at a time, 20 a second at most; the p99 of 400 of them by
  nearest rank, so the fourth slowest: half of them before the rest, half after it, for a machine
  that others use is not as fast in each minute,
- what it holds: eight clients, each as fast as it is answered; the good answers a second,
- five times that rate, at random moments, whatever is answered. The first two seconds do not count.
  Of what is sent beside recalls, one in twenty is a write: those must not starve.

Each is timed from the moment at which it was due.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.request import urlopen

import psycopg

from benchmarks.speed.end_to_end import IDLE
from benchmarks.support.common import CallTimes, Running, running, show
from benchmarks.support.open_loop import Answer, Load, Make, alone, flood, load_on, together
from benchmarks.support.resource_usage import postgres_of, processes

OVERLOAD_FACTOR = 5
UNLOADED_REQUESTS, UNLOADED_PAUSE = 400, 0.05
CAPACITY_SECONDS, CAPACITY_CLIENTS = 5.0, 8
WARM_UP_SECONDS = 2.0
PARTS = ("writes", "recalls")
WRITE_EVERY = 20
TITLE = """Five times the capacity; 'succeed' as a share of the capacity; 'ratio': the p99 of what
succeeds by the unloaded p99"""
COLUMNS = ("", "p50 ms", "p99 ms", "capacity/s", "sent/s", "succeed", "p50 ms", "p99 ms", "ratio")


@dataclass(frozen=True)
class Result:
    """One kind of request: alone, at capacity, and under overload."""

    path: str
    unloaded: CallTimes
    capacity: float
    flood: list[Answer]
    writes_beside: list[Answer]
    seconds: float
    lateness: CallTimes
    processor_shares: dict[str, float]

    def row(self) -> list[str]:
        """The line of the table."""
        succeeded = CallTimes([answer.taken for answer in self.flood if answer.good], self.seconds)
        return [
            self.path,
            f"{self.unloaded.at(0.5):.1f}",
            f"{self.unloaded.at(0.99):.1f}",
            f"{self.capacity:.0f}",
            f"{len(self.flood) / self.seconds:.0f}",
            f"{succeeded.rate / self.capacity:.2f}",
            f"{succeeded.at(0.5):.1f}",
            f"{succeeded.at(0.99):.1f}",
            f"{succeeded.at(0.99) / self.unloaded.at(0.99):.2f}",
        ]

    def print_details(self) -> None:
        """Prints what does not fit into the table."""
        counts = Counter(answer.status for answer in self.flood)
        statuses = ", ".join(f"{count} times {status}" for status, count in sorted(counts.items()))
        rejected = [answer for answer in self.flood if answer.status in (429, 503)]
        without_retry = sum(b"\r\nRetry-After: " not in answer.head for answer in rejected)
        rejection = CallTimes([answer.taken for answer in rejected] or [0.0], self.seconds)
        print(f"{self.path}: {statuses}; {without_retry} rejections without Retry-After")
        print(
            f"  rejected after {rejection.at(0.5):.1f} ms (p50), {rejection.at(0.99):.1f} ms (p99)"
        )
        print(f"  requests were sent {self.lateness.at(0.99):.1f} ms late (p99)")
        shares = ", ".join(f"{name} {share:.2f}" for name, share in self.processor_shares.items())
        print(f"  processors used: {shares}")
        writes = CallTimes([one.taken for one in self.writes_beside if one.good], self.seconds)
        if writes.each:
            print(
                f"  of {len(self.writes_beside)} writes sent beside, {len(writes.each)} succeeded, "
                f"in {writes.at(0.5):.1f} ms (p50), {writes.at(0.99):.1f} ms (p99)"
            )


def measure(
    system: Running,
    load: Load,
    path: str,
    make: Make,
    seconds: float,
    make_write: Make | None = None,
) -> Result:
    """Measures one kind of request. Every twentieth request of the flood is a write."""
    together(load, make, 4, 1.5)
    wait_until_idle(system)
    before = alone(load, make, UNLOADED_REQUESTS // 2, UNLOADED_PAUSE)
    answers = together(load, make, CAPACITY_CLIENTS, CAPACITY_SECONDS)
    capacity = sum(answer.good for answer in answers) / CAPACITY_SECONDS
    # Both percentiles are taken of about equally many requests.
    seconds = max(seconds, UNLOADED_REQUESTS / capacity)
    makes = itertools.cycle([make] * (WRITE_EVERY - 1) + [make_write or make])
    load.lateness.clear()
    started = time.perf_counter()
    with processes(system) as used:
        found = flood(
            load, lambda: next(makes)(), OVERLOAD_FACTOR * capacity, WARM_UP_SECONDS + seconds
        )
    elapsed = time.perf_counter() - started
    counted = [answer for answer in found if answer.due - started > WARM_UP_SECONDS]
    lateness = CallTimes(load.lateness, elapsed)
    wait_until_idle(system)
    after = alone(load, make, UNLOADED_REQUESTS // 2, UNLOADED_PAUSE)
    result = Result(
        path,
        CallTimes([answer.taken for answer in before + after], 1.0),
        capacity,
        [answer for answer in counted if answer.path == path],
        [answer for answer in counted if answer.path != path],
        seconds,
        lateness,
        {name: spent / elapsed / 1000 for name, spent in used.items()},
    )
    show(TITLE, COLUMNS, [result.row()])
    result.print_details()
    halves = (CallTimes([one.taken for one in half], 1.0).at(0.99) for half in (before, after))
    print("  unloaded p99 before and after: {:.1f} and {:.1f} ms".format(*halves))
    return result


def wait_until_idle(system: Running) -> None:
    """Waits, a minute at most, until the background work of all writes is done."""
    until = time.perf_counter() + 60.0
    while time.perf_counter() < until:
        with urlopen(system.urls["ingest"] + "/metrics") as answer:
            samples = [line.split() for line in answer.read().decode().splitlines()]
        if not any(float(sample[1]) for sample in samples if sample and sample[0] in IDLE):
            return
        time.sleep(0.2)


def stored_memories(system: Running, found: list[Answer]) -> str:
    """Tells whether every memory whose write was acknowledged is stored."""
    ids = [json.loads(answer.body)["id"] for answer in found if answer.status == 201]
    with psycopg.connect(postgres_of(system).admin_url(), autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from reverie.memory where id = any(%s::uuid[])", [ids]
        ).fetchone()
    assert row is not None
    return f"of {len(ids)} memories whose write was acknowledged, {row[0]} are stored"


def main(parts: Sequence[str], seconds: float) -> None:
    with running() as system, load_on(system.gateway, system.key) as load:
        numbers = itertools.count()

        def remember() -> bytes:
            content = f"Worker {next(numbers)} of {time.time_ns()} keeps {random.random()} apart"
            return load.post("/v1/remember", {"content": content, "scope": "project/shop"})

        def recall() -> bytes:
            # No two questions are alike, so that caches of earlier answers do not help.
            query = f"which worker keeps {random.random()} apart, of the {next(numbers)}"
            return load.post("/v1/recall", {"query": query, "limit": 5})

        if "writes" in parts:
            written = measure(system, load, "/v1/remember", remember, seconds)
            print(stored_memories(system, written.flood))
        if "recalls" in parts:
            together(load, remember, CAPACITY_CLIENTS, CAPACITY_SECONDS)
            measure(system, load, "/v1/recall", recall, seconds, remember)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    main([options.only] if options.only else PARTS, options.seconds)

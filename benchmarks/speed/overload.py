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
from benchmarks.support.common import Measured, Running, running, show
from benchmarks.support.open_loop import Answer, Load, Make, alone, flood, load_on, together
from benchmarks.support.resource_usage import postgres_of, processes

TIMES = 5
ALONE, PAUSE = 400, 0.05
HELD_SECONDS, HELD_CLIENTS = 5.0, 8
WARM_SECONDS = 2.0
PARTS = ("writes", "recalls")
EVERY = 20
TITLE = """Five times what it holds; 'let in' as a share of what it holds, 'times': the p99 of what
is let in by the unloaded p99"""


COLUMNS = ("", "p50 ms", "p99 ms", "held/s", "sent/s", "let in", "p50 ms", "p99 ms", "times")


@dataclass(frozen=True)
class Result:
    """One kind of request: alone, as fast as it goes, and five times that."""

    path: str
    alone: Measured
    held: float
    flood: list[Answer]
    beside: list[Answer]
    seconds: float
    lateness: Measured
    taken: dict[str, float]

    @property
    def let_in(self) -> Measured:
        """What was answered as asked."""
        return Measured([one.taken for one in self.flood if one.good], self.seconds)

    def row(self) -> list[str]:
        """As it is shown."""
        return [
            self.path,
            f"{self.alone.at(0.5):.1f}",
            f"{self.alone.at(0.99):.1f}",
            f"{self.held:.0f}",
            f"{len(self.flood) / self.seconds:.0f}",
            f"{self.let_in.rate / self.held:.2f}",
            f"{self.let_in.at(0.5):.1f}",
            f"{self.let_in.at(0.99):.1f}",
            f"{self.let_in.at(0.99) / self.alone.at(0.99):.2f}",
        ]

    def tell(self) -> None:
        """What does not fit into a row."""
        counts = Counter(one.status for one in self.flood)
        told = ", ".join(f"{n} times {status}" for status, n in sorted(counts.items()))
        refused = [one for one in self.flood if one.status in (429, 503)]
        lacking = sum(b"\r\nRetry-After: " not in one.head for one in refused)
        away = Measured([one.taken for one in refused] or [0.0], self.seconds)
        print(f"{self.path}: {told}; {lacking} refusals without Retry-After")
        print(f"  refused after {away.at(0.5):.1f} ms (p50), {away.at(0.99):.1f} ms (p99)")
        print(f"  the load itself was late by {self.lateness.at(0.99):.1f} ms (p99)")
        shares = ", ".join(f"{name} {share:.2f}" for name, share in self.taken.items())
        print(f"  processors taken meanwhile: {shares}")
        good = Measured([one.taken for one in self.beside if one.good], self.seconds)
        if good.each:
            print(
                f"  of {len(self.beside)} writes beside them {len(good.each)} were done, in "
                f"{good.at(0.5):.1f} ms (p50), {good.at(0.99):.1f} ms (p99)"
            )


def measure(
    system: Running, load: Load, path: str, make: Make, seconds: float, beside: Make | None = None
) -> Result:
    """One kind of request; in the flood every twentieth is one of `beside`."""
    together(load, make, 4, 1.5)
    idle(system)
    unloaded = alone(load, make, ALONE // 2, PAUSE)
    good = [one for one in together(load, make, HELD_CLIENTS, HELD_SECONDS) if one.good]
    held = len(good) / HELD_SECONDS
    # As many as were asked alone, so that both ranks are of as many.
    seconds = max(seconds, ALONE / held)
    makes = itertools.cycle([make] * (EVERY - 1) + [beside or make])
    load.lateness.clear()
    begun = time.perf_counter()
    with processes(system) as taken:
        found = flood(load, lambda: next(makes)(), TIMES * held, WARM_SECONDS + seconds)
    whole = time.perf_counter() - begun
    counted = [one for one in found if one.due - begun > WARM_SECONDS]
    own = [one for one in counted if one.path == path]
    others = [one for one in counted if one.path != path]
    shares = {who: spent / whole / 1000 for who, spent in taken.items()}
    late = Measured(load.lateness, whole)
    idle(system)
    after = alone(load, make, ALONE // 2, PAUSE)
    usual = Measured([one.taken for one in unloaded + after], 1.0)
    result = Result(path, usual, held, own, others, seconds, late, shares)
    show(TITLE, COLUMNS, [result.row()])
    result.tell()
    halves = (Measured([one.taken for one in half], 1.0).at(0.99) for half in (unloaded, after))
    print("  unloaded p99 of those before it and after it: {:.1f} and {:.1f} ms".format(*halves))
    return result


def idle(system: Running) -> None:
    """Waits, a minute at most, until nothing is left to be derived from what was written."""
    until = time.perf_counter() + 60.0
    while time.perf_counter() < until:
        with urlopen(system.urls["ingest"] + "/metrics") as answer:
            told = [line.split() for line in answer.read().decode().splitlines()]
        if not any(float(line[1]) for line in told if line and line[0] in IDLE):
            return
        time.sleep(0.2)


def kept(system: Running, found: list[Answer]) -> str:
    """Whether the memories whose writes were answered are there."""
    ids = [json.loads(one.body)["id"] for one in found if one.status == 201]
    with psycopg.connect(postgres_of(system).admin_url(), autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from reverie.memory where id = any(%s::uuid[])", [ids]
        ).fetchone()
    assert row is not None
    return f"of {len(ids)} memories whose write was answered, {row[0]} are there"


def main(parts: Sequence[str], seconds: float) -> None:
    with running() as system, load_on(system.gateway, system.key) as load:
        numbers = itertools.count()

        def remember() -> bytes:
            said = f"Worker {next(numbers)} of {time.time_ns()} keeps its {random.random()} apart"
            return load.post("/v1/remember", {"content": said, "scope": "project/shop"})

        def recall() -> bytes:
            # No two alike: what is remembered of questions asked before must help neither side.
            query = f"which worker keeps {random.random()} apart, of the {next(numbers)}"
            return load.post("/v1/recall", {"query": query, "limit": 5})

        if "writes" in parts:
            written = measure(system, load, "/v1/remember", remember, seconds)
            print(kept(system, written.flood))
        if "recalls" in parts:
            together(load, remember, HELD_CLIENTS, HELD_SECONDS)
            measure(system, load, "/v1/recall", recall, seconds, remember)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=12.0)
    asked = parser.parse_args()
    main([asked.only] if asked.only else PARTS, asked.seconds)

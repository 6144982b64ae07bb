"""Breaks a running system, and says what became of it.

    python -m tests.chaos.run --seed 7 --operations 10000 --faults 100

Clients of several tenants write, edit, link, supersede, forget, talk and read while faults
strike; in the end every note of theirs is held against what the system holds. Prints a report;
ends with 1 where something does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import LiteralString

import aiohttp

from tests.chaos.clients import Client, Log
from tests.chaos.doors import Watch
from tests.chaos.faults import FAIL_OVER, Fault, drawn, strike
from tests.chaos.finals import read_state
from tests.chaos.history import Violation, violations
from tests.chaos.system import System, running_system
from tests.tables import rows

TENANTS = ["acme", "bolt", "core"]
BACK = 15.0
"""Seconds within which each door is back after a fault."""
SETTLING = 180.0
"""Seconds for what is under way when the last client stops."""
WAITING: LiteralString = """
select (select count(*) from outbox),
       (select count(*) from dream_job where parked is null),
       (select count(*) from memory where enriched_version < version
          and status in ('active', 'superseded')),
       (select count(*) from git_event where processed is null),
       (select count(*) from turn where run is null)
"""


@dataclass(frozen=True)
class Plan:
    """How long and how hard: `clients` of each tenant act until there are `operations`
    acknowledged and `faults` were survived; `calm`: seconds between two strikes, at most.
    `several`: on three NATS servers and a Postgres with a standby, which takes over half way;
    `clock`: the services' can be moved.
    """

    seed: int = 1
    operations: int = 10_000
    faults: int = 100
    clients: int = 3
    calm: float = 3.0
    several: bool = False
    clock: bool = True


@dataclass
class Result:
    """What a run was."""

    plan: Plan
    log: Log = field(default_factory=Log)
    struck: Counter[str] = field(default_factory=Counter)
    back: dict[str, float] = field(default_factory=dict)
    """By door, the longest time after a fault until it answered, in seconds."""
    shut: dict[str, float] = field(default_factory=dict)
    """By door, the longest time between two answers, in seconds."""
    seconds: float = 0.0
    wrong: list[Violation] = field(default_factory=list)

    def failures(self) -> list[str]:
        """All that must not be."""
        late = [f"{door} was back after {s:.1f} s" for door, s in self.back.items() if s > BACK]
        return [*map(str, self.wrong), *self.log.strange, *late]


async def break_it(folder: Path, plan: Plan) -> Result:
    """A run of it in an empty folder."""
    result, dice = Result(plan), Random(plan.seed)
    running = running_system(folder, TENANTS, plan.several, plan.clock)
    async with running as system, aiohttp.ClientSession() as http:
        gateway = system.gateway
        watch = Watch(http, gateway, system.keys[TENANTS[0]])
        watching = asyncio.create_task(watch.stand())
        began = time.monotonic()
        over = asyncio.Event()
        clients = [
            Client(http, gateway, key, tenant, n, result.log, Random(f"{plan.seed}{tenant}{n}"))
            for tenant, key in system.keys.items()
            for n in range(plan.clients)
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(_go_on(client, over))
                group.create_task(_strike_on(system, plan, dice, watch, result, over))
            result.seconds = time.monotonic() - began
            result.wrong = [*await settled(system), *await told(system, http, result.log)]
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        result.shut = {name: door.longest() for name, door in watch.doors.items()}
    return result


async def _go_on(client: Client, over: asyncio.Event) -> None:
    while not over.is_set():
        await client.act()


async def _strike_on(
    system: System, plan: Plan, dice: Random, watch: Watch, result: Result, over: asyncio.Event
) -> None:
    """Faults, each followed by the wait for every door, until there was enough of all."""
    struck = 0
    while struck < plan.faults or result.log.acknowledged < plan.operations:
        await asyncio.sleep(dice.uniform(0.3, plan.calm))
        if struck < plan.faults:
            half_way = plan.several and system.standby and struck >= plan.faults // 2
            faults = [FAIL_OVER] if half_way else drawn(dice, system)
            await strike(system, faults, dice)
            struck += len(faults)
            await _back(faults, watch, result)
            _progress(struck, plan, result)
    over.set()


async def _back(faults: list[Fault], watch: Watch, result: Result) -> None:
    """Waits for each door to answer again, for twice the time it may take."""
    ended = time.monotonic()
    result.struck.update(fault.name for fault in faults)
    for name, door in watch.doors.items():
        took = await door.again(ended, 2 * BACK)
        result.back[name] = max(result.back.get(name, 0.0), took)


async def settled(system: System) -> list[Violation]:
    """Waits until nothing is queued: no event to publish, no turn undigested, no change unapplied;
    or answers what still is."""
    until = time.monotonic() + SETTLING
    while waiting := _waiting(system):
        if time.monotonic() > until:
            return [Violation("still waiting", f"{what} {n}") for what, n in waiting.items()]
        await asyncio.sleep(0.5)
    return []


async def told(system: System, http: aiohttp.ClientSession, log: Log) -> list[Violation]:
    """What of the clients' notes does not hold of the state as the gateway tells it."""
    states = {
        tenant: await read_state(
            http, system.gateway, key, [deed for deed in log.deeds if deed.tenant == tenant]
        )
        for tenant, key in system.keys.items()
    }
    return violations(log.deeds, log.sights, states)


def _waiting(system: System) -> dict[str, int]:
    """How much is under way, by table."""
    counts = rows(system.server.admin_url(), WAITING)[0]
    names = ("events", "digests", "memories", "changes", "turns")
    return {name: n for name, n in zip(names, counts, strict=True) if n}


def _progress(struck: int, plan: Plan, result: Result) -> None:
    if sys.stderr.isatty():
        done = result.log.acknowledged
        print(f"\r{struck}/{plan.faults} faults, {done}/{plan.operations} acknowledged",
              end="", file=sys.stderr)  # fmt: skip


def report(result: Result) -> str:
    """The run in Markdown."""
    log, plan = result.log, result.plan
    acts = Counter(f"{deed.act} {deed.outcome}" for deed in log.deeds)
    lines = [
        f"Seed {plan.seed}: {log.acknowledged} operations acknowledged in {result.seconds:.0f} s "
        f"by {plan.clients * len(TENANTS)} clients of {len(TENANTS)} tenants; "
        f"{result.struck.total()} faults.",
        "",
        "| operation | times |",
        "|---|---|",
        *(f"| {name} | {times} |" for name, times in sorted(acts.items())),
        f"| reads | {len(log.sights)} |",
        "",
        "| fault | times |",
        "|---|---|",
        *(f"| {name} | {times} |" for name, times in sorted(result.struck.items())),
        "",
        "| door | back after a fault, at most | without an answer, at most |",
        "|---|---|---|",
        *(f"| {n} | {result.back.get(n, 0):.1f} s | {s:.1f} s |" for n, s in result.shut.items()),
        "",
        "Answers: " + ", ".join(f"{n} {t}" for n, t in sorted(log.answers.items())) + ".",
        "",
    ]
    failures = result.failures()
    lines += [f"- {failure}" for failure in failures[:50]]
    return "\n".join([*lines, "Nothing lost, doubled, invented or leaked." if not failures else ""])


def main() -> None:
    """As a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    for name, default in (("seed", 1), ("operations", 10_000), ("faults", 100), ("clients", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--calm", type=float, default=3.0)
    parser.add_argument("--several", action="store_true", help="three NATS, Postgres with standby")
    parser.add_argument("--keep", action="store_true", help="leave the folder with its logs")
    given = vars(parser.parse_args())
    kept = given.pop("keep")
    plan = Plan(**given)
    folder = Path(tempfile.mkdtemp(prefix="reverie-chaos-"))
    folder.chmod(0o711)
    try:
        result = asyncio.run(break_it(folder, plan))
    finally:
        if kept:
            print(f"logs: {folder}/home/logs", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(report(result))
    sys.exit(1 if result.failures() else 0)


if __name__ == "__main__":
    main()

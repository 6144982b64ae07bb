"""Injects faults into a running system and checks what clients recorded.

    python -m chaos.run --seed 7 --operations 10000 --faults 100 --page

Clients of several tenants write, edit, link, supersede, forget, talk and read while faults
strike; in the end every note of theirs is held against what the system holds. Prints a report,
and with --page puts it into docs/reliability.md; ends with 1 where something does not hold, and
leaves the notes and logs of that then.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import LiteralString

import aiohttp

from chaos.availability import AvailabilityMonitor
from chaos.clients import Client, Log
from chaos.faults import ALL_FAULTS, FAIL_OVER, Deck, Fault, inject_faults
from chaos.final_state import read_state
from chaos.history import Violation, violations
from chaos.report import put, report
from chaos.result import RECOVERY_LIMIT, TENANTS, ChaosPlan, ChaosResult, HistoryFile, Strike
from chaos.system import System, running_system
from reverie.testing.servers import TestRun
from tests.support.tables import rows

SETTLE_TIMEOUT = 180.0
"""Seconds for what is under way when the last client stops."""
FAULT_TIMEOUT = 120.0
"""Seconds after which a fault that does not end is given up, and the run with it."""
ABORT_AFTER = 15 * 60
"""Seconds beyond the time of a plan after which the process ends, whatever it waits for."""
PROGRESS_INTERVAL = 20.0
"""Seconds between two lines of progress where nobody watches a terminal."""
PENDING_COUNTS: LiteralString = """
select (select count(*) from outbox),
       (select count(*) from dream_job where parked is null),
       (select count(*) from memory where enriched_version < version
          and status in ('active', 'superseded')),
       (select count(*) from git_event where processed is null),
       (select count(*) from turn where run is null)
"""


async def run_chaos(folder: Path, result: ChaosResult, shared: TestRun | None = None) -> None:
    """A run of it in an empty folder; what comes of it is in `result` as far as it gets.

    `shared`: on the Postgres of that run.
    """
    plan = result.plan
    running = running_system(folder, TENANTS, plan.several, plan.clock, True, shared)
    async with running as system, aiohttp.ClientSession() as http:
        result.unavailable_faults = list_unavailable_faults(system)
        result.began = time.monotonic()
        monitor = AvailabilityMonitor(http, system.gateway, system.keys[TENANTS[0]])
        monitoring = asyncio.create_task(monitor.run())
        notes = HistoryFile(folder, result)
        try:
            await _run_clients(http, system, monitor, notes, result)
            await _check_result(http, system, result)
        finally:
            monitoring.cancel()
            with suppress(asyncio.CancelledError):
                await monitoring
            notes.write()
            result.seconds = result.seconds or time.monotonic() - result.began
            result.longest_gaps = {
                name: endpoint.longest_gap() for name, endpoint in monitor.endpoints.items()
            }
            result.refused = {
                name: endpoint.refused for name, endpoint in monitor.endpoints.items()
            }


def list_unavailable_faults(system: System) -> tuple[str, ...]:
    """The faults that cannot be done here: no small disk may be mounted, no clock be moved."""
    return tuple(one.name for one in ALL_FAULTS if one.needs and getattr(system, one.needs) is None)


async def _run_clients(
    http: aiohttp.ClientSession,
    system: System,
    monitor: AvailabilityMonitor,
    notes: HistoryFile,
    result: ChaosResult,
) -> None:
    """Clients at work, and faults beside them, until there was enough of both or the time is up."""
    plan, stop = result.plan, asyncio.Event()
    clients = [
        Client(http, system.gateway, key, tenant, n, result.log, Random(f"{plan.seed}{tenant}{n}"))
        for tenant, key in system.keys.items()
        for n in range(plan.clients)
    ]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(_run_client(client, stop))
        progress = group.create_task(_show_progress(result))
        try:
            async with asyncio.timeout(plan.minutes * 60):
                await _inject_faults(system, Random(plan.seed), monitor, notes, result)
        except TimeoutError:
            result.wrong.append(Violation("too slow", f"not done in {plan.minutes:g} minutes"))
        stop.set()
        progress.cancel()
    result.seconds = time.monotonic() - result.began


async def _run_client(client: Client, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await client.act_at_random()


async def _inject_faults(
    system: System,
    rng: Random,
    monitor: AvailabilityMonitor,
    notes: HistoryFile,
    result: ChaosResult,
) -> None:
    """Faults, each followed by the wait for every endpoint, until there was enough of all."""
    plan, deck = result.plan, Deck(system, rng, result.plan.strikes)
    while (injected := result.fault_counts.total()) < plan.faults:
        await asyncio.sleep(rng.uniform(0.3, plan.calm))
        half_way = system.standby and injected >= plan.faults // 2
        faults = [FAIL_OVER] if half_way else deck.deal()
        result.strikes.append(await _inject_and_wait(system, faults, rng, monitor, result))
        notes.write()
    while result.log.acknowledged < plan.operations:  # noqa: ASYNC110
        await asyncio.sleep(0.5)


async def _inject_and_wait(
    system: System,
    faults: list[Fault],
    rng: Random,
    monitor: AvailabilityMonitor,
    result: ChaosResult,
) -> Strike:
    """One strike; ends when each endpoint answered, or after twice the time it may take.

    Raises where a fault does not end: nothing that comes after would tell anything.
    """
    names = tuple(fault.name for fault in faults)
    began = time.monotonic()
    try:
        async with asyncio.timeout(FAULT_TIMEOUT):
            await inject_faults(system, faults, rng)
    except TimeoutError:
        raise RuntimeError(f"{' and '.join(names)} did not end in {FAULT_TIMEOUT:.0f} s") from None
    ended = time.monotonic()
    took = await asyncio.gather(
        *(
            endpoint.recovery_time(ended, 2 * RECOVERY_LIMIT)
            for endpoint in monitor.endpoints.values()
        )
    )
    back = dict(zip(monitor.endpoints, took, strict=True))
    return Strike(names, began - result.began, ended - began, back)


async def _check_result(http: aiohttp.ClientSession, system: System, result: ChaosResult) -> None:
    began = time.monotonic()
    result.wrong += await wait_until_settled(system)
    result.settle_seconds = time.monotonic() - began
    result.wrong += await check_consistency(system, http, result.log)
    result.checked = True


async def wait_until_settled(system: System, seconds: float = SETTLE_TIMEOUT) -> list[Violation]:
    """Waits until nothing is queued: no event to publish, no turn undigested, no change unapplied;
    or answers what still is."""
    until = time.monotonic() + seconds
    while waiting := await asyncio.to_thread(_count_pending, system):
        if time.monotonic() > until:
            return [Violation("still waiting", f"{what} {n}") for what, n in waiting.items()]
        await asyncio.sleep(0.5)
    return []


async def check_consistency(
    system: System, http: aiohttp.ClientSession, log: Log
) -> list[Violation]:
    """What of the clients' notes does not hold of the state as the gateway tells it."""
    states = {
        tenant: await read_state(
            http, system.gateway, key, [call for call in log.calls if call.tenant == tenant]
        )
        for tenant, key in system.keys.items()
    }
    return violations(log.calls, log.reads, states)


def _count_pending(system: System) -> dict[str, int]:
    """How much is under way, by table."""
    counts = rows(system.admin_url, PENDING_COUNTS)[0]
    names = ("events", "digests", "memories", "changes", "turns")
    return {name: n for name, n in zip(names, counts, strict=True) if n}


async def _show_progress(result: ChaosResult) -> None:
    """How far it is, on standard error: in one line of a terminal, else a line now and then."""
    seen, plan = sys.stderr.isatty(), result.plan
    while True:
        await asyncio.sleep(1.0 if seen else PROGRESS_INTERVAL)
        last = " and ".join(result.strikes[-1].faults) if result.strikes else "none yet"
        line = (
            f"{(time.monotonic() - result.began) / 60:.1f} min, {result.log.acknowledged} of "
            f"{plan.operations} operations, {result.fault_counts.total()} of {plan.faults} faults "
            f"(last: {last})"
        )
        print(f"\r\033[K{line}" if seen else line, end="" if seen else "\n", file=sys.stderr)
        sys.stderr.flush()


def main() -> None:
    """As a command."""
    given = vars(_parser().parse_args())
    page, keep = given.pop("page"), given.pop("keep")
    result = ChaosResult(ChaosPlan(**given | {"strikes": tuple(given["strikes"])}))
    folder = Path(tempfile.mkdtemp(prefix="reverie-chaos-"))
    folder.chmod(0o711)
    # Told to end, it ends as by Ctrl-C: what was started is taken down, and what is known is told.
    # A shell that puts it into the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    faulthandler.dump_traceback_later(result.plan.minutes * 60 + ABORT_AFTER, exit=True)
    try:
        asyncio.run(run_chaos(folder, result))
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        result.wrong.append(
            Violation("broken off", f"{type(error).__name__}: {_root_message(error)}")
        )
    faulthandler.cancel_dump_traceback_later()
    failed = bool(result.failures())
    if keep or failed:
        print(f"notes and logs: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    print(report(result))
    if page:
        put("several" if result.plan.several else "one", report(result))
    sys.exit(1 if failed else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    plan = ChaosPlan()
    for name in ("seed", "operations", "faults", "clients"):
        parser.add_argument(f"--{name}", type=int, default=getattr(plan, name))
    for name in ("calm", "minutes"):
        parser.add_argument(f"--{name}", type=float, default=getattr(plan, name))
    only = "only these faults, by their names in the report; joined by + at once"
    parser.add_argument("--strike", dest="strikes", action="append", default=[], help=only)
    parser.add_argument("--several", action="store_true", help="three NATS, Postgres with standby")
    parser.add_argument("--keep", action="store_true", help="leave the folder with notes and logs")
    parser.add_argument(
        "--page", action="store_true", help="put the report into docs/reliability.md"
    )
    return parser


def _root_message(error: BaseException) -> str:
    """What went wrong at the bottom of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


if __name__ == "__main__":
    main()

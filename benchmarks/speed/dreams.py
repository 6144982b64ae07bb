"""Measures dream throughput without a language model, its stages, memory and fairness.

Real sessions, each in a scope of its own and copied until there are enough, are digested by one
worker and by two, each a process; the share of time by stage is what the workers noted in their
runs. Then one session of 10,000 turns and 5 MB or more: the memory that it takes. Then fairness:
10,000 scopes of one tenant are queued before one of another. `python -m benchmarks.speed.dreams
fair` measures that alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import cast
from unittest.mock import AsyncMock
from uuid import UUID

import psutil  # type: ignore[import-untyped, unused-ignore]

from benchmarks.support.common import CallTimes, parser, show
from reverie.contracts.sessions import NewTurnBody
from reverie.domain.access.principals import Principal
from reverie.domain.core.ids import new_id
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR
from reverie.domain.text.turns import condense_tool_output
from reverie.runtime.settings.settings import Settings
from reverie.store.db.database import open_database
from reverie.store.memories.memories import MemoryStore
from reverie.store.sessions.dream_queue import DreamQueue
from reverie.store.sessions.sessions import SessionStore
from reverie.testing import servers
from reverie_services.dream.digest.worker import DreamWorker
from reverie_services.dream.settings import build_dream_settings
from reverie_services.ingest.write.prepared_records import prepare_turn
from tests.dream.test_dream_worker import dream_parts
from tests.support.real_transcripts import TRANSCRIPTS, bodies, transcripts
from tests.support.store_setup import Store, add_tenants, admin_rows, open_store, principal

COPIES = 2
QUEUED = 10_000
LONG_TURNS, LONG_BYTES = 10_000, 5_000_000
NO_DATA = 2


def main() -> int:
    """Prints the figures."""
    asked = parser(__doc__)
    asked.add_argument("parts", nargs="*", metavar="PART", help=" ".join(MEASURED))
    asked.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.work:
        asyncio.run(_work(given.work))
        return 0
    if unknown := set(given.parts) - set(MEASURED):
        asked.error(f"no such part: {', '.join(sorted(unknown))}")
    if not TRANSCRIPTS.exists():
        print(f"no sessions at {TRANSCRIPTS}")
        return NO_DATA
    with servers.open_run() as run:
        for name in given.parts or MEASURED:
            with servers.fresh_database(run) as database:
                asyncio.run(MEASURED[name](database))
    return 0


async def _digest(database: servers.DatabaseUrls, workers: int) -> None:
    async with open_store(database) as store:
        for copy in range(COPIES):
            for name, batches in _sessions():
                await _append(store, store.me, f"project/{name}-{copy}", batches)
        [(turns, chars)] = admin_rows(
            store.admin_url, "select count(*), sum(length(content)) from turn"
        )
        admin_rows(store.admin_url, "analyze")
        done, took = await _by(database.service_url, workers)
        told = "select coalesce(sum(turns), 0), coalesce(sum(created), 0) from dream_run"
        [(digested, created)] = admin_rows(store.admin_url, told)
        assert digested == turns, (digested, turns)
        cpu = sum(one["cpu"] for one in done)
        rate = turns / took
        show(
            f"Dreaming over {turns} turns ({chars / 1e6:.1f} MB, {created} memories), no model",
            ("workers", "turns/s", "turns/s a worker", "CPU ms a turn", "MB at most"),
            [
                (
                    str(workers), f"{rate:.0f}", f"{rate / workers:.0f}",
                    f"{1000 * cpu / turns:.2f}", f"{max(one['rss'] for one in done):.0f}",
                )
            ],
        )  # fmt: skip
        _stages(store)


def _stages(store: Store) -> None:
    """The share of each stage in what the workers noted."""
    spent: Counter[str] = Counter()
    for (seconds,) in admin_rows(store.admin_url, "select seconds from dream_run"):
        spent.update(seconds)
    whole = sum(spent.values())
    lines = [(name, f"{took:.1f}", f"{took / whole:.0%}") for name, took in spent.most_common()]
    show("Time by stage", ("stage", "seconds", "share"), lines)


def _sessions() -> Iterator[tuple[str, list[list[NewTurnBody]]]]:
    for name, transcript in transcripts().items():
        yield (
            name.lower()[:60],
            [[NewTurnBody.model_validate(turn) for turn in batch] for batch in bodies(transcript)],
        )


async def _append(
    store: Store, who: Principal, scope: str, batches: Sequence[Sequence[NewTurnBody]]
) -> UUID:
    """An ended session, as it would have come in through the door, and a request."""
    sessions, settings = SessionStore(store.db), Settings()
    session, _ = await sessions.start(who, new_id(), scope, {"agent": "ann"})
    for batch in batches:
        accepted = [
            prepare_turn(n, turn, CREDENTIAL_REDACTOR, settings, None)[0]
            for n, turn in enumerate(batch)
        ]
        await sessions.append(who, session, accepted)
    await sessions.end(who, session, None)
    await DreamQueue(store.db).request(who.tenant, who.tenant_name, scope, "session end", {})
    return session


async def _by(service_url: str, workers: int) -> tuple[list[dict[str, float]], float]:
    """What each worker process tells, and the seconds from their start to the last one's end."""
    pipe = asyncio.subprocess.PIPE
    made = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.speed.dreams", "--work", service_url,
            stdin=pipe, stdout=pipe,
        )
        for _ in range(workers)
    ]  # fmt: skip
    for one in made:
        assert one.stdout
        while (await one.stdout.readline()).strip() != b"ready":
            pass
    begun = time.perf_counter()
    told = await asyncio.gather(*(one.communicate(b"go\n") for one in made))
    took = time.perf_counter() - begun
    return [json.loads(out.splitlines()[-1]) for out, _ in told], took


async def _work(service_url: str) -> None:
    """One worker, until nothing is due."""
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    async with open_database(service_url, size=4) as db, watched_memory() as memory:
        nobody = principal(0, "none")
        parts = dream_parts(Store(db, MemoryStore(db), nobody, nobody, "", service_url))
        parts = replace(parts, settings=build_dream_settings(Settings()))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        before = time.process_time()
        await DreamWorker(parts).run_due_dreams()
        cpu = time.process_time() - before
        published = cast("AsyncMock", parts.publisher.bus.publish).await_args_list
        told = sum(call.args[0].subject.endswith(".digesting") for call in published)
    found = {"cpu": cpu, "rss": max(memory), "was": memory[0], "told": told}
    print(json.dumps(found))


@asynccontextmanager
async def watched_memory() -> AsyncIterator[list[float]]:
    """The MB that this process holds, looked at every twentieth of a second."""
    process = psutil.Process()
    seen = [process.memory_info().rss / 1e6]

    async def look() -> None:
        while True:
            await asyncio.sleep(0.05)
            seen.append(process.memory_info().rss / 1e6)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()


async def _long(database: servers.DatabaseUrls) -> None:
    batches = _one_long_session()
    turns = sum(map(len, batches))
    async with open_store(database) as store:
        await _append(store, store.me, "project/long", batches)
        sized = "select sum(length(content)) from turn"
        [(chars,)] = admin_rows(store.admin_url, sized)
        [done], took = await _by(database.service_url, 1)
        [(digested,)] = admin_rows(store.admin_url, "select sum(turns) from dream_run")
        assert digested == turns
        show(
            f"One session of {turns} turns, {chars / 1e6:.1f} MB as it is stored",
            ("seconds", "turns/s", "CPU ms a turn", "MB before", "MB at most", "progress events"),
            [
                (
                    f"{took:.1f}", f"{turns / took:.0f}", f"{1000 * done['cpu'] / turns:.2f}",
                    f"{done['was']:.0f}", f"{done['rss']:.0f}", f"{done['told']:.0f}",
                )
            ],
        )  # fmt: skip
        _stages(store)


def _one_long_session() -> list[list[NewTurnBody]]:
    """What was said in all sessions, again and again until it is enough; numbered, so that nothing
    comes twice."""
    said: list[NewTurnBody] = []
    size = 0
    while len(said) < LONG_TURNS or size < LONG_BYTES:
        for _, batches in _sessions():
            for turn in (turn for batch in batches for turn in batch):
                content = f"{turn.content}\n({len(said)})"
                said.append(turn.model_copy(update={"content": content, "external_id": None}))
                size += len(
                    condense_tool_output(turn.tool, content) if turn.role == "tool" else content
                )
    return [said[at : at + 500] for at in range(0, len(said), 500)]


async def _fair(database: servers.DatabaseUrls) -> None:
    async with open_store(database) as store:
        [small] = add_tenants(store.admin_url, "small")
        admin_rows(
            store.admin_url,
            "insert into dream_job (tenant, scope, reason, due)"
            " select %s, 'project/p' || n, 'idle', now() - interval '1 hour'"
            " from generate_series(1, %s) n",
            store.me.tenant,
            QUEUED,
        )
        admin_rows(store.admin_url, "analyze")
        dreams = DreamQueue(store.db)
        await dreams.claim("bench", 3600)
        await dreams.request(small, "small", "global", "asked", {})
        each, place, begun = [], 0, time.perf_counter()
        for nth in range(200):
            started = time.perf_counter()
            lease = await dreams.claim("bench", 3600)
            each.append(time.perf_counter() - started)
            if lease and lease.tenant == small:
                place = nth + 1
        took = CallTimes(each, time.perf_counter() - begun)
    show(
        f"One scope of a tenant behind {QUEUED} of another's",
        ("claims until it is served", "claim p50 ms", "p95 ms"),
        [(str(place), f"{took.at(0.5):.1f}", f"{took.at(0.95):.1f}")],
    )


MEASURED: dict[str, Callable[[servers.DatabaseUrls], Coroutine[None, None, None]]] = {
    "one": partial(_digest, workers=1),
    "two": partial(_digest, workers=2),
    "long": _long,
    "fair": _fair,
}


if __name__ == "__main__":
    sys.exit(main())

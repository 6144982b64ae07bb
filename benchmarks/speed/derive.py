"""Measures how long a single memory waits for its vector behind a backlog of memories in bulk.

    python -m benchmarks.speed.derive --backlog 10000 --seconds 60

Fills one tenant in batches until so many of its memories wait, every second one of them long. Then
it remembers one memory at a time, of the same tenant and of another, and once a batch of 20 of a
third. It prints how long each waited for its vector, and how fast the backlog drained meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg

from benchmarks.support import generated_texts
from benchmarks.support.common import CallTimes, Running, parser, running, show
from benchmarks.support.resource_usage import postgres_of, processes
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.inference.model_resolver import resolve_model
from reverie.inference.token_counters import ModelTokenCounter
from reverie.store.platform.api_keys import NewApiKey, create_key, ensure_tenant
from reverie.testing.models import model_home

TENANTS = ("full", "quiet", "third")
SINGLES = {"full": "single, of the same tenant", "quiet": "single, of another tenant"}
BATCH, SMALL_BATCH = 250, 20
LONG_PARTS = 9
"""Sentences of a long text: 2 kB."""
PAUSE = 1.0
"""Seconds between two single memories."""
FOUND = """
select distinct c.memory from reverie.chunk c
join reverie.vec_bge_small_en_v1_5 v on v.tenant = c.tenant and v.chunk = c.no
where c.memory = any($1)
"""
DERIVED = "select id from reverie.memory where enriched_version = version"
WAITING = """
select count(*) from reverie.memory
where enriched_version < version and status in ('active', 'superseded')
"""


@dataclass
class DeriveBenchmark:
    """A running system, the keys of its tenants, and the memories whose vectors are awaited."""

    system: Running
    http: aiohttp.ClientSession
    database: asyncpg.Connection
    keys: dict[str, str]
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    texts: dict[UUID, str] = field(default_factory=dict)
    begun: dict[UUID, tuple[str, float]] = field(default_factory=dict)
    waited: dict[str, list[float]] = field(default_factory=dict)

    async def post(self, tenant: str, path: str, body: Any) -> Any:
        """The answer to a request of a tenant, which must succeed."""
        headers = {"Authorization": f"Bearer {self.keys[tenant]}"}
        url = f"{self.system.gateway}/v1/{path}"
        async with self.http.post(url, json=body, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def remember(self, kind: str, tenant: str) -> None:
        """Remembers one memory, and awaits its vector from then on."""
        body = {"content": generated_texts.memory(next(self.numbers))}
        begun = time.perf_counter()
        made = await self.post(tenant, "remember", body)
        self.begun[UUID(made["id"])] = kind, begun

    async def remember_batch(self, tenant: str, count: int) -> list[UUID]:
        """Remembers a batch, in which every second memory is long."""
        contents = [self._content(number) for number in itertools.islice(self.numbers, count)]
        items = [{"content": content} for content in contents]
        answer = await self.post(tenant, "remember/batch", {"items": items})
        ids = [UUID(item["id"]) for item in answer["items"]]
        self.texts |= zip(ids, contents, strict=True)
        return ids

    def _content(self, number: int) -> str:
        if number % 2:
            return generated_texts.memory(number)
        parts = range(number * LONG_PARTS, (number + 1) * LONG_PARTS)
        return "\n\n".join(generated_texts.memory(10**6 + part) for part in parts)

    async def watch(self) -> None:
        """Notes the time at which each awaited memory got its vector, until it is cancelled."""
        while True:
            for row in await self.database.fetch(FOUND, list(self.begun)):
                kind, begun = self.begun.pop(row["memory"])
                self.waited.setdefault(kind, []).append(time.perf_counter() - begun)
            await asyncio.sleep(0.02)


async def measure(bench: DeriveBenchmark, connection: asyncpg.Connection, asked: Any) -> None:
    """Fills the backlog, writes beside it, and prints what waited for how long."""
    while await connection.fetchval(WAITING) < asked.backlog:
        await bench.remember_batch("full", BATCH)
    before = {row["id"] for row in await connection.fetch(DERIVED)}
    left, begun = await connection.fetchval(WAITING), time.perf_counter()
    with processes(bench.system) as spent:
        await _write_beside(bench, asked.seconds)
        took = time.perf_counter() - begun
        derived = {row["id"] for row in await connection.fetch(DERIVED)} - before
    rest = await connection.fetchval(WAITING)
    assert rest, "the backlog was gone before the measurement ended: ask for a larger one"
    print(f"{left:,} memories waited at first, {rest:,} in the end, after {took:.0f} s")
    kinds = sorted({*bench.waited, *(kind for kind, _ in bench.begun.values())})
    show("Seconds until the vector is there", ["", "of", "p50", "p95", "max"], [
        [kind, *_figures(bench, kind)] for kind in kinds
    ])  # fmt: skip
    counter = ModelTokenCounter(resolve_model(DEFAULT_MODEL, model_home(), download=False))
    drained = [bench.texts[memory] for memory in derived if memory in bench.texts]
    tokens = sum(map(counter.count, drained))
    rates = [f"{len(derived) / took:.1f}", f"{tokens / took:,.0f}"]
    show("Derived a second", ["", "memories", "tokens"], [["beside the writes", *rates]])
    print(*(f"{name}: {ms / took / 1000:.2f} processors" for name, ms in spent.items()), sep=", ")


async def _write_beside(bench: DeriveBenchmark, seconds: float) -> None:
    ends = time.perf_counter() + seconds
    watching = asyncio.create_task(bench.watch())
    begun = time.perf_counter()
    batch = await bench.remember_batch("third", SMALL_BATCH)
    bench.begun |= dict.fromkeys(batch, (f"a batch of {SMALL_BATCH}, of a third tenant", begun))
    for tenant in itertools.cycle(SINGLES):
        if time.perf_counter() > ends:
            break
        await bench.remember(SINGLES[tenant], tenant)
        await asyncio.sleep(PAUSE)
    await asyncio.sleep(2 * PAUSE)
    watching.cancel()
    await asyncio.wait({watching})


def _figures(bench: DeriveBenchmark, kind: str) -> list[str]:
    """How many, and the percentiles; of those without a vector yet, the time they waited so far."""
    now, waited = time.perf_counter(), bench.waited.get(kind, [])
    pending = [now - begun for name, begun in bench.begun.values() if name == kind]
    least = min(pending, default=now)
    times = CallTimes([*waited, *pending], 1)
    marks = [times.at(share) / 1000 for share in (0.5, 0.95, 1)]
    figures = [f"{'> ' if mark >= least else ''}{mark:.2f}" for mark in marks]
    return [f"{len(waited)} of {len(times.each)}", *figures]


async def main(system: Running, asked: argparse.Namespace) -> None:
    """Makes the tenants and the connections, and measures."""
    url = postgres_of(system).admin_url()
    for tenant in TENANTS:
        ensure_tenant(url, tenant)
    keys = {tenant: create_key(url, NewApiKey("bench", tenant=tenant)) for tenant in TENANTS}
    watcher, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        async with aiohttp.ClientSession() as http:
            await measure(DeriveBenchmark(system, http, watcher, keys), reader, asked)
    finally:
        await watcher.close()
        await reader.close()


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--backlog", type=int, default=10_000, help="memories that wait at first")
    options.add_argument("--seconds", type=float, default=60.0, help="how long it writes beside")
    with running() as up:
        asyncio.run(main(up, options.parse_args()))

"""Measures writes, enrichment, recall and dreams over HTTP, next to their baselines.

Run from the root of the project: `python -m benchmarks.speed.end_to_end`; takes a few minutes.
This process makes the load; `reverie up` and the floor's server are its children. Postgres syncs
every commit, as it does for users. `--sizes 1000 10000 100000 --tenants 100` asks larger stores
too: the last is a hundred tenants of 10,000 memories, a million, which takes ten minutes to fill.
`--kept FOLDER` keeps what was filled, so that it can be measured again. `--only recall` leaves
the writes out,
`--only fill` measures nothing, `--only drain` the slow path alone.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.speed.recall_latency import figures, recalls
from benchmarks.support import generated_texts
from benchmarks.support.common import CallTimes, Running, load, running, show
from benchmarks.support.resource_usage import postgres_of, processor_time, table_bytes
from reverie.inference.embedder import OnnxEmbedder, load_embedder
from reverie.inference.sparse_encoder import OnnxSparseEncoder, load_sparse_encoder
from reverie.testing.models import model_home

MEMORIES = 3_500
BATCH = 250
CALLS = {1: 200, 8: 400, 64: 640}
"""Calls measured by the number of clients."""
FLOOR_TEXTS = 200
EACH = 10_000
SESSIONS, TURNS = 20, 30
IDLE = ("reverie_memories_unenriched", "reverie_outbox_waiting")


@dataclass
class SpeedBenchmark:
    """A running system and who talks to it."""

    system: Running
    http: aiohttp.ClientSession
    model: OnnxEmbedder
    sparse: OnnxSparseEncoder
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def post(self, url: str, body: Any) -> Any:
        """The answer to a POST that must succeed.

        Who is told to come again, as more ask than are let in, does so then: all of it counts.
        """
        while True:
            async with self.http.post(url, json=body) as answer:
                told = await answer.text()
            if answer.status != 503:
                break
            await asyncio.sleep(float(answer.headers["Retry-After"]))
        assert answer.status < 300, told
        return json.loads(told)

    async def idle(self) -> None:
        """Waits until the slow path has nothing left to do."""
        async with asyncio.timeout(600):
            while not await self._caught_up():  # noqa: ASYNC110
                await asyncio.sleep(0.3)

    async def waiting(self) -> dict[str, float]:
        """How many memories and events wait, by the name of the figure."""
        async with self.http.get(self.system.urls["ingest"] + "/metrics") as answer:
            lines = [line.split() for line in (await answer.text()).splitlines()]
        return {line[0]: float(line[1]) for line in lines if line and line[0] in IDLE}

    async def _caught_up(self) -> bool:
        return not any((await self.waiting()).values())


async def writes(bench: SpeedBenchmark, floor_url: str) -> None:
    """Remember, at the gateway and at ingest's own port, beside the floor."""
    doors = {
        "POST and a bare INSERT": floor_url,
        "remember, at ingest": bench.system.urls["ingest"] + "/v1/remember",
        "remember, at the gateway": bench.system.gateway + "/v1/remember",
    }
    rows: list[list[str]] = []
    for clients, count in CALLS.items():
        least: CallTimes | None = None
        for name, url in doors.items():
            found = await load(clients, count, lambda _, url=url: _remember(bench, url))  # type: ignore[misc]
            least = least or found
            rows.append([name, str(clients), *figures(found), _ratio(found, least)])
            await bench.idle()
    show("Writing", ["", "clients", "p50 ms", "p99 ms", "a second", "p50, times floor"], rows)


async def _remember(bench: SpeedBenchmark, url: str) -> Any:
    return await bench.post(url, {"content": generated_texts.memory(next(bench.numbers))})


async def slow_path(bench: SpeedBenchmark) -> None:
    """Memories sent in batches until there are enough of them, and enriched."""
    url = bench.system.gateway + "/v1/remember/batch"
    written = 2 * sum(CALLS.values())
    new = [generated_texts.memory(next(bench.numbers)) for _ in range(MEMORIES - written)]
    batches = [new[place : place + BATCH] for place in range(0, len(new), BATCH)]
    taken = await load(
        1, len(batches), lambda n: bench.post(url, {"items": [{"content": t} for t in batches[n]]})
    )
    left, begun = (await bench.waiting())[IDLE[0]], time.perf_counter()
    with processor_time(bench.system) as spent:
        await bench.idle()
    took = time.perf_counter() - begun
    rate, whole = left / took, len(new) / (taken.whole + took)
    fresh = [generated_texts.memory(next(bench.numbers)) for _ in range(FLOOR_TEXTS)]
    dense = await load(1, FLOOR_TEXTS, lambda n: bench.model.embed([fresh[n]]))
    begun_models = time.process_time()
    both = await load(1, FLOOR_TEXTS, lambda n: _both(bench, fresh[n]))
    models = (time.process_time() - begun_models) * 1000 / FLOOR_TEXTS
    floors = {"the embedding model": dense.rate, "both models, a thread each": both.rate}
    rows = [
        *([name, f"{floor:.0f}", f"{rate / floor:.2f}"] for name, floor in floors.items()),
        [f"taken in batches of {BATCH}", f"{len(new) / taken.whole:.0f}", ""],
        ["derived, when all were taken", f"{rate:.0f}", ""],
        ["taken and derived", f"{whole:.0f}", ""],
    ]
    show(f"The slow path, {len(new)} memories", ["", "a second", "derived, times that"], rows)
    parts = {"what derives": spent.deriving, "Postgres": spent.postgres}
    each = {"both models alone": models} | {name: ms / max(left, 1) for name, ms in parts.items()}
    for name, ms in each.items():
        print(f"{ms:.1f} ms of processor time a memory: {name}", flush=True)


async def _both(bench: SpeedBenchmark, text: str) -> None:
    await asyncio.gather(bench.model.embed([text]), bench.sparse.encode([text]))


async def dreams(bench: SpeedBenchmark) -> None:
    """Conversations handed over first, then ended all at once."""
    base = bench.system.gateway
    sessions = [await _talk(bench, number) for number in range(SESSIONS)]
    await asyncio.gather(*(bench.post(f"{base}/v1/sessions/{one}/end", {}) for one in sessions))
    runs = await _dreamt(bench, set(sessions))
    begun = min(datetime.fromisoformat(run["started_at"]) for run in runs)
    ended = max(datetime.fromisoformat(run["ended_at"]) for run in runs)
    turns, made = (sum(run[what] for run in runs) for what in ("turns", "created"))
    seconds = (ended - begun).total_seconds()
    rows = [[turns, made, f"{seconds:.1f}", f"{turns / seconds:.0f}"]]
    show(f"Dreaming, {SESSIONS} sessions", ["turns", "memories", "s", "turns a second"], rows)
    await bench.idle()


async def _talk(bench: SpeedBenchmark, number: int) -> str:
    start = {"agent": "bench", "project": f"project-{number}"}
    started = await bench.post(f"{bench.system.gateway}/v1/sessions/start", start)
    session = str(started["session"])
    body = {"session": session, "turns": generated_texts.conversation(number, TURNS)}
    await bench.post(f"{bench.system.gateway}/v1/turns", body)
    return session


async def _dreamt(bench: SpeedBenchmark, sessions: set[str]) -> list[dict[str, Any]]:
    async with asyncio.timeout(120):
        while True:
            async with bench.http.get(f"{bench.system.gateway}/v1/dreams?limit=200") as answer:
                runs = [run for run in (await answer.json())["items"] if run["status"] == "done"]
            if sessions <= {session for run in runs for session in run["sessions"]}:
                return runs
            await asyncio.sleep(0.2)


def _ratio(found: CallTimes, least: CallTimes) -> str:
    return f"{found.at(0.5) / least.at(0.5):.1f}"


@contextmanager
def floor_server(system: Running) -> Iterator[str]:
    """The floor's server, on the same Postgres; yields its address."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.support.baseline_server",
        postgres_of(system).admin_url(),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip()
        finally:
            child.terminate()


@asynccontextmanager
async def opened(system: Running) -> AsyncIterator[SpeedBenchmark]:
    """The load's client and a model of its own, on one thread as the services have it."""
    model, sparse = load_embedder(home=model_home()), load_sparse_encoder(home=model_home())
    headers = {"Authorization": f"Bearer {system.key}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        await asyncio.gather(model.warm(), sparse.warm())
        try:
            yield SpeedBenchmark(system, http, model, sparse)
        finally:
            model.close()
            sparse.close()


async def measure(system: Running, floor_url: str, asked: argparse.Namespace) -> None:
    """Writes, the slow path, dreams; then recall."""
    async with opened(system) as bench:
        if asked.only == "drain":
            await slow_path(bench)
            return
        if asked.only not in {"recall", "fill"}:
            empty = table_bytes(system)
            await writes(bench, floor_url)
            await slow_path(bench)
            size = (table_bytes(system) - empty) / MEMORIES
            print(f"{size:.0f} bytes a memory, all tables and indexes", flush=True)
            await dreams(bench)
        if asked.only != "writes":
            wanted = asked.sizes, asked.tenants, EACH
            await recalls(system, bench.model, *wanted, measured=asked.only != "fill")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--tenants", type=int, default=0, help=f"tenants of {EACH:,} memories")
    parser.add_argument("--only", choices=("writes", "drain", "recall", "fill"))
    parser.add_argument("--kept", type=Path, help="a folder that keeps what was filled")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = _arguments()
    with running(arguments.kept) as up, floor_server(up) as floor_address:
        asyncio.run(measure(up, floor_address, arguments))

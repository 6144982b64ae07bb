"""Measures how long preflow takes for the prompts of a session, and before edits and commands.

Run from the root of the project: `python -m benchmarks.speed.prompts [--size N] [--sessions N]`.
The tenant holds N memories, some of which touch the files that are edited. One client, one call
after another. The aims at p95: 300 ms for the first prompt of a session, 150 ms for all else.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections import Counter, defaultdict
from typing import Any

import aiohttp

from benchmarks.speed.end_to_end import opened
from benchmarks.speed.recall_latency import fill_tenants, wait_for_ranks, wait_for_rest
from benchmarks.support import bulk_memories, generated_texts
from benchmarks.support.common import CallTimes, Running, running, show

PROJECT = "bench"
TOUCHING = 300
MODULES = 60
WARM_SESSIONS = 5
PROMPTS = 5
"""Prompts of a session; an edit and a command follow each."""
COMMANDS = ("git push --force", "alembic upgrade head", "pytest -x", "docker compose up")


async def fill_project(system: Running, size: int) -> str:
    """Fills a tenant with `size` memories, and some that touch the files of `PROJECT`; its key."""
    async with opened(system) as bench:
        texts = [generated_texts.memory(n) for n in range(bulk_memories.CENTRES)]
        corpus, _ = await fill_tenants(system, 1, size, await bench.model.embed(texts))
        [key] = corpus.keys.values()
        items = [
            {
                "scope": f"project/{PROJECT}",
                "content": f"src/module_{n % MODULES}.py: {generated_texts.memory(-n - 1)}",
            }
            for n in range(TOUCHING)
        ]
        async with _connect(system, key) as http:
            await _post(http, "/v1/remember/batch", {"items": items})
        await bench.idle()
    await wait_for_ranks(system)
    await wait_for_rest(system)
    return key


def _connect(system: Running, key: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(system.gateway, headers={"Authorization": f"Bearer {key}"})


async def measure(system: Running, size: int, sessions: int) -> None:
    """Fills a tenant, and prints the times of each kind of call."""
    key = await fill_project(system, size)
    async with _connect(system, key) as http:
        numbers = itertools.count(1)
        for _ in range(WARM_SESSIONS):
            await _play_session(http, numbers)
        await wait_for_rest(system)
        taken: dict[str, list[float]] = defaultdict(list)
        late: Counter[str] = Counter()
        for _ in range(sessions):
            for name, seconds, is_degraded in await _play_session(http, numbers):
                taken[name].append(seconds)
                late[name] += is_degraded
    rows = []
    for name, each in taken.items():
        times = CallTimes(each, sum(each))
        figures = [f"{times.at(share):.0f}" for share in (0.5, 0.95, 1.0)]
        rows.append([f"{name} ({len(each)})", *figures, str(late[name])])
    columns = ["", "p50 ms", "p95 ms", "slowest", "degraded"]
    show(f"Preflow, {size + TOUCHING:,} memories", columns, rows)


async def _play_session(
    http: aiohttp.ClientSession, numbers: itertools.count[int]
) -> list[tuple[str, float, bool]]:
    """The seconds of each call of one session, and whether a part of it failed or was late."""
    loop = asyncio.get_running_loop()
    start = {"agent": "bench", "project": PROJECT}
    session = (await _post(http, "/v1/sessions/start", start))["session"]
    calls: list[tuple[str, dict[str, str]]] = []
    for place in range(PROMPTS):
        number = next(numbers)
        command = COMMANDS[number % len(COMMANDS)]
        file = f"src/module_{number % MODULES}.py"
        name = "later prompt" if place else "first prompt"
        calls += [
            (name, {"query": generated_texts.question(number)}),
            ("before an edit", {"query": file, "before": "edit"}),
            ("before a command", {"query": command, "before": "command"}),
        ]
    taken = []
    for name, body in calls:
        begun = loop.time()
        answer = await _post(http, "/v1/preflow", {"session": session, **body})
        taken.append((name, loop.time() - begun, bool(answer["degraded"])))
    return taken


async def _post(http: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    async with http.post(path, json=body) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=40)
    given = parser.parse_args()
    with running() as up:
        asyncio.run(measure(up, given.size, given.sessions))

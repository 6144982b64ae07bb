"""Counts how often a memory is in the very next recall, while others are written.

Run from the root of the project: `python -m benchmarks.speed.fresh_writes [--tries N] [--size N]
[--writers N]`. The tenant holds as many memories as `--size` says, so its recall index is in
memory. Each writer remembers a memory with a word of its own, and asks for that word at once. Of
one in so many it waits until the vector is there, and asks whether the memory is found by meaning.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp
import asyncpg

from benchmarks.speed.end_to_end import opened
from benchmarks.speed.recall_latency import fill_tenants, wait_for_ranks
from benchmarks.support import bulk_memories, generated_texts
from benchmarks.support.common import Running, running, show
from benchmarks.support.resource_usage import postgres_of

BY_MEANING_EVERY = 20
WARM_CALLS = 20
BUSY_PAUSE = 0.02
"""Seconds after which a call that was refused for load is repeated."""


async def measure(system: Running, tries: int, size: int, writers: int) -> None:
    """Fills a tenant, and prints the hits of all tries."""
    async with opened(system) as bench:
        texts = [generated_texts.memory(n) for n in range(bulk_memories.CENTRES)]
        corpus, _ = await fill_tenants(system, 1, size, await bench.model.embed(texts))
    await wait_for_ranks(system)
    [key] = corpus.keys.values()
    headers = {"Authorization": f"Bearer {key}"}
    numbers, counts = iter(range(tries)), Counter[str]()
    async with (
        aiohttp.ClientSession(system.gateway, headers=headers) as http,
        asyncpg.create_pool(postgres_of(system).admin_url(), min_size=1, max_size=2) as pool,
    ):
        for number in range(WARM_CALLS):
            await _post(http, "/v1/recall", {"query": generated_texts.question(number)})
        await asyncio.gather(*(_write(http, pool, numbers, counts) for _ in range(writers)))
    rows = [
        [f"by {arm}", f"{counts[f'{arm} hit']:,}", f"{counts[arm]:,}"]
        for arm in ("words", "meaning")
    ]
    title = f"Found by the next recall, {size:,} memories, {writers} writers"
    show(title, ["", "hits", "tries"], rows)


async def _write(
    http: aiohttp.ClientSession, pool: Any, numbers: Iterator[int], counts: Counter[str]
) -> None:
    for number in numbers:
        content = f"zq{number}x: {generated_texts.memory(-1_000_000 - number)}"
        body = {"content": content, "scope": "project/bench"}
        memory = (await _post(http, "/v1/remember", body))["id"]
        found = await _post(http, "/v1/recall", {"query": f"zq{number}x"})
        counts["words"] += 1
        counts["words hit"] += memory in [hit["id"] for hit in found["memories"]]
        if number % BY_MEANING_EVERY == 0:
            await _wait_for_vector(pool, memory)
            found = await _post(http, "/v1/recall", {"query": content})
            counts["meaning"] += 1
            counts["meaning hit"] += await _is_found_by_meaning(http, found["trace_id"], memory)


async def _wait_for_vector(pool: Any, memory: str) -> None:
    is_whole = "select enriched_version >= version from reverie.memory where id = $1"
    while not await pool.fetchval(is_whole, memory):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _is_found_by_meaning(http: aiohttp.ClientSession, trace: str, memory: str) -> bool:
    async with http.get(f"/v1/traces/{trace}") as answer:
        candidates = (await answer.json())["candidates"]
    return any(one["id"] == memory and "meaning" in one["arms"] for one in candidates)


async def _post(http: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    while True:
        async with http.post(path, json=body) as answer:
            if answer.status != 503:
                assert answer.status < 300, await answer.text()
                return await answer.json()
        await asyncio.sleep(BUSY_PAUSE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--writers", type=int, default=8)
    given = parser.parse_args()
    with running() as up:
        asyncio.run(measure(up, given.tries, given.size, given.writers))

"""Measures recall latency at several sizes, next to embedding and one bare statement.

The floors are the embedding of the question alone, on one thread as the gateway has it, and one
bare statement through asyncpg that brings the candidates of both arms.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from benchmarks.support import bulk_memories, generated_texts
from benchmarks.support.common import CallTimes, Running, load, show
from benchmarks.support.resource_usage import postgres_of, processor_time, table_bytes
from reverie.domain.text.index_terms import query_text
from reverie.inference.embedder import OnnxEmbedder
from reverie.store.db.connections import SERVER_SETTINGS
from reverie.store.db.queries import get_query
from reverie.store.platform.api_keys import NewApiKey, create_key, ensure_tenant, list_tenants
from reverie.store.search.corpus_counts import EXACT_SEARCH_LIMIT
from reverie.store.search.search import LOOKUP_FACTOR

CALLS = {1: 200, 8: 400}
WARM = 20
QUIET = 50.0
"""Milliseconds of a second that Postgres takes beside, for the clock and its own upkeep."""
CANDIDATES = 100
COLUMNS = ("", "clients", "p50 ms", "p99 ms", "a second", "times floors", "gateway", "Postgres")
_EXACT = {2: 11, 3: 3, 4: 4, 5: 7, 6: 8, 7: 9, 8: 12}
"""Where the places of the vector search's statement stand in the statement of both."""


@dataclass(frozen=True)
class Corpus:
    """Memories to be asked for: their tenants by number, each with a key, and how many each has."""

    name: str
    keys: Mapping[int, str]
    size: int


async def recalls(
    system: Running,
    model: OnnxEmbedder,
    sizes: Sequence[int],
    many: int,
    each: int,
    measured: bool = True,
) -> None:
    """Fills a tenant of each size, and `many` of `each`; measures one after another."""
    centres = await model.embed([generated_texts.memory(n) for n in range(bulk_memories.CENTRES)])
    questions = itertools.count(1)
    for count, size in [*((1, size) for size in sizes), *([(many, each)] if many else [])]:
        before = table_bytes(system)
        corpus, anew = await fill_tenants(system, count, size, centres)
        await wait_for_ranks(system)
        per = (table_bytes(system) - before) / (count * size)
        if measured:
            rows = await _measured(system, model, corpus, questions)
            show(f"Recall, {corpus.name}; processor time in ms a call", COLUMNS, rows)
        told = f"{per:.0f} bytes each, tables and indexes" if anew else "as they were kept"
        print(f"{corpus.name} memories: {told}", flush=True)


async def wait_for_ranks(system: Running) -> None:
    """Waits until nothing is computed any more of what was filled, and clears up after it."""
    connection = await asyncpg.connect(postgres_of(system).admin_url())
    changed = "select exists (select from reverie.edge_change)"
    try:
        async with asyncio.timeout(900):
            while await connection.fetchval(changed):  # noqa: ASYNC110
                await asyncio.sleep(1)
        await connection.execute("vacuum reverie.edge_change")
    finally:
        await connection.close()


async def fill_tenants(
    system: Running, count: int, size: int, centres: bulk_memories.Centres
) -> tuple[Corpus, bool]:
    """The memories, and whether any of them was missing."""
    url = postgres_of(system).admin_url()
    names = [f"bench-{count}x{size}-{number}" for number in range(count)]
    for name in names:
        ensure_tenant(url, name)
    numbers = {name: number for number, name in list_tenants(url)}
    keys = {numbers[name]: create_key(url, NewApiKey("bench", tenant=name)) for name in names}
    anew = await bulk_memories.fill(url, dict.fromkeys(keys, size), centres)
    title = f"{size:,}" if count == 1 else f"{count} tenants of {size:,}"
    return Corpus(title, keys, size), anew


async def _measured(
    system: Running, model: OnnxEmbedder, corpus: Corpus, questions: itertools.count[int]
) -> list[list[str]]:
    """The floors, then recall by the number of clients."""
    rows: list[list[str]] = []
    alone = await load(
        1, CALLS[1], lambda _: model.embed([generated_texts.question(-next(questions))])
    )
    async with _bare(system, model, corpus) as statement:
        await load(1, WARM, statement)
        bare = await load(1, CALLS[1], statement)
    rows.append([f"{corpus.name}: embedding alone", "1", *figures(alone), "", "", ""])
    rows.append([f"{corpus.name}: one bare statement", "1", *figures(bare), "", "", ""])
    floor = alone.at(0.5) + bare.at(0.5)
    async with aiohttp.ClientSession() as http:
        # What is read from the disk for the first time may be too late; who asked a few times is
        # kept in the gateway's memory.
        warming = _asking(system, http, corpus, questions, whole=False)
        await load(4, max(WARM, 6 * len(corpus.keys)), warming)
        await wait_for_rest(system)
        ask = _asking(system, http, corpus, questions)
        for clients, count in CALLS.items():
            with processor_time(system) as taken:
                found = await load(clients, count, ask)
            spent = [f"{ms / count:.1f}" for ms in (taken.gateway, taken.postgres)]
            times = f"{found.at(0.5) / floor:.2f}"
            name = f"{corpus.name}: recall"
            rows.append([name, str(clients), *figures(found), times, *spent])
    return rows


async def wait_for_rest(system: Running) -> None:
    """Waits until Postgres has nothing to do, at most two minutes."""
    for _ in range(120):
        with processor_time(system) as spent:
            await asyncio.sleep(1)
        if spent.postgres < QUIET:
            return


def figures(found: CallTimes) -> list[str]:
    """p50 and p99 in milliseconds, and the rate."""
    return [f"{found.at(0.5):.1f}", f"{found.at(0.99):.1f}", f"{found.rate:.0f}"]


def _asking(
    system: Running,
    http: aiohttp.ClientSession,
    corpus: Corpus,
    questions: itertools.count[int],
    whole: bool = True,
) -> Callable[[int], Awaitable[object]]:
    keys, chance = list(corpus.keys.values()), random.Random(corpus.size)

    async def ask(number: int) -> object:
        key = chance.choice(keys) if whole else keys[number % len(keys)]
        headers = {"Authorization": f"Bearer {key}"}
        body = {"query": generated_texts.question(next(questions))}
        # On a busy machine some are told to come again: the time until then counts.
        while True:
            where = system.gateway + "/v1/recall"
            async with http.post(where, json=body, headers=headers) as answer:
                found = await answer.json()
            if answer.status != 503:
                break
            await asyncio.sleep(0.02)
        assert answer.status == 200, found
        assert not (whole and found["degraded"]), found["degraded"]
        return found

    return ask


@asynccontextmanager
async def _bare(
    system: Running, model: OnnxEmbedder, corpus: Corpus
) -> AsyncIterator[Callable[[int], Awaitable[object]]]:
    """The statement, its questions embedded beforehand, on a connection of its own."""
    connection = await asyncpg.connect(
        postgres_of(system).service_url(), server_settings=SERVER_SETTINGS
    )
    try:
        await register_vector(connection, schema="public")
        tenant = next(iter(corpus.keys))
        await connection.execute(f"set reverie.tenant = '{tenant}'")
        known = await connection.fetchrow(get_query("corpus").sql, tenant, ["*"])
        assert known is not None
        asked = [await _args(model, tenant, known, number) for number in range(CALLS[1])]
        exact = corpus.size <= EXACT_SEARCH_LIMIT
        statement = _both("search_vectors_exact" if exact else "search_vectors_index")
        cut = 12 if exact else 11
        yield lambda number: connection.fetch(statement, *asked[number][:cut])
    finally:
        await connection.close()


async def _args(model: OnnxEmbedder, tenant: int, known: Any, number: int) -> tuple[Any, ...]:
    text = generated_texts.question(-10_000_000 - number)
    [vector] = await model.embed([text])
    size = (known["documents"], known["mean_length"])
    words = (tenant, query_text(text), ["*"], ["active", "superseded"], *size, CANDIDATES)
    few = LOOKUP_FACTOR * CANDIDATES
    return (*words, None, None, few, HalfVector(vector), few)


def _both(vectors: str) -> str:
    """Both arms in one statement."""
    moved = re.sub(
        r"\$(\d+)", lambda m: f"${_EXACT.get(int(m[1]), int(m[1]))}", get_query(vectors).sql
    )
    words = get_query("search_words").sql
    return f"select doc, score from ({words}) w union all select doc, score from ({moved}) v"

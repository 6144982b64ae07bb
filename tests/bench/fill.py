"""Memories by the ten thousand: written straight into the tables, with vectors that are made up.

A vector is that of one of `CENTRES` real texts with noise added, so that a real question has near
and far neighbours as it would among real ones. What else a memory has is what its slow path would
have left: words, postings, a chunk, three relations, a session of twenty memories.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.asyncpg import register_vector
from tests.bench import texts

from reverie.domain.words import index_text
from reverie.store.counts import EXACT_UP_TO

CENTRES = 500
NOISE = 0.035
"""The deviation of each of a vector's numbers: neighbours of one centre have a cosine of .68."""
AT_ONCE = 10_000

Centres = NDArray[np.float32]

_STAGE = """
create temp table made (n int, id uuid default uuidv7(), content text, words text, v halfvec(384))
"""
_MEMORIES = """
insert into memory (tenant, id, scope, kind, tier, enriched_version, content, hash, words, terms,
                    confidence, source, session)
select $1, m.id, 'project/p' || m.n % 5, (array['decision','bug','lesson','context'])[1 + m.n % 4],
       'warm', 1, m.content, sha256(m.content::bytea), w.words, word_count(w.words), 0.8, 'agent',
       lpad(to_hex(m.n / 20), 32, '0')::uuid
from made m cross join lateral (select to_tsvector('english', m.words) as words offset 0) w
order by m.n
"""
_POSTINGS = """
insert into posting (tenant, term, doc, tf, len)
select $1, term_no(w.lexeme), m.doc, cardinality(w.positions), m.terms
from made n join memory m on m.tenant = $1 and m.id = n.id cross join lateral unnest(m.words) w
order by 2, 3
"""
_CHUNKS = """
with c as (
  insert into chunk (tenant, memory, ord, start, stop, hash)
  select $1, n.id, 0, 0, length(n.content), sha256(n.content::bytea) from made n
  returning no, memory
)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v, walked)
select $1, c.no, n.v, $2 from c join made n on n.id = c.memory order by n.n
"""
_EDGES = """
insert into edge (tenant, id, src, kind, dst, weight)
select $1, gen_random_uuid(), a.id, 'relates_to', b.id, 0.5
from made a cross join (values (7), (31), (97)) s (step) join made b on b.n = a.n - s.step
"""
_SAID = """
insert into memory_said (tenant, memory, session)
select $1, m.id, lpad(to_hex(m.n / 20), 32, '0')::uuid from made m
"""

_INDEX = "vec_bge_small_en_v1_5_hnsw"


async def fill(url: str, sizes: dict[int, int], centres: Centres) -> None:
    """Adds to each tenant as many memories as `sizes` says, through an owner's address.

    The vector index is made anew after the rows, which takes a tenth of the time; only large
    tenants are in it.
    """
    connection = await asyncpg.connect(url, server_settings={"search_path": "reverie,public"})
    try:
        await register_vector(connection, schema="public")
        await connection.execute(_STAGE)
        index: str = await connection.fetchval(f"select pg_get_indexdef('{_INDEX}'::regclass)")
        await connection.execute(f"drop index {_INDEX}")
        for tenant, count in sizes.items():
            await _fill(connection, tenant, count, centres)
        await connection.execute("set maintenance_work_mem = '2GB'")
        # As it is told, the index would be made on no partition.
        await connection.execute(index.replace(" ON ONLY ", " ON "))
        await connection.execute("vacuum analyze")
    finally:
        await connection.close()


async def _fill(connection: Any, tenant: int, count: int, centres: Centres) -> None:
    chance = np.random.default_rng(tenant)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        made = list(_made(numbers, centres, chance))
        await _add(connection, tenant, made, count > EXACT_UP_TO)


async def _add(connection: Any, tenant: int, made: list[tuple[Any, ...]], walked: bool) -> None:
    async with connection.transaction():
        await connection.execute("truncate made")
        await connection.copy_records_to_table(
            "made", records=made, columns=["n", "content", "words", "v"]
        )
        await connection.execute("analyze made")
        await connection.execute(f"set local reverie.tenant = '{tenant}'")
        for statement in (_MEMORIES, _POSTINGS, _CHUNKS, _EDGES, _SAID):
            await connection.execute(statement, tenant, *([walked] if statement is _CHUNKS else []))


def _made(
    numbers: range, centres: Centres, chance: np.random.Generator
) -> Iterator[tuple[int, str, str, HalfVector]]:
    for number in numbers:
        text = texts.memory(number)
        vector = centres[number % len(centres)] + chance.normal(0, NOISE, centres.shape[1])
        unit = (vector / np.linalg.norm(vector)).astype(np.float16)
        yield number, text, index_text(text), HalfVector(unit)

"""Loads made-up memories with vectors straight into the tables.

A vector is that of one of `CENTRES` real texts with noise added, so that a real question has near
and far neighbours as it would among real ones. What else a memory has is what its slow path would
have left: words, postings, a chunk, three relations, a session of twenty memories. Of several
tenants of one size all but the first are copies of it, with ids and numbers of their own. What is
there already stays: a filling that was broken off goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from benchmarks.support import generated_texts
from reverie.domain.text.index_terms import index_text
from reverie.store.search.corpus_counts import EXACT_SEARCH_LIMIT

CENTRES = 500
NOISE = 0.035
"""The deviation of each of a vector's numbers: neighbours of one centre have a cosine of .68."""
AT_ONCE = 10_000
STEPS = (7, 31, 97)
"""How far before it stand the memories that each is related to: with those behind, six edges."""

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
insert into posting_entry (tenant, term, entry)
select $1, term_hash(w.lexeme)::int, pack_posting(m.doc, cardinality(w.positions), m.terms)
from made n join memory m on m.tenant = $1 and m.id = n.id cross join lateral unnest(m.words) w
order by 2, 3
"""
_CHUNKS = """
with c as (
  insert into chunk (tenant, memory, ordinal, start, stop, hash)
  select $1, n.id, 0, 0, length(n.content), sha256(n.content::bytea) from made n
  returning no, memory
)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v, indexed)
select $1, c.no, n.v, $2 from c join made n on n.id = c.memory order by n.n
"""
_EDGES = """
insert into edge (tenant, id, src, kind, dst, weight)
select $1, gen_random_uuid(), a.id, 'relates_to', b.id, 0.5
from made a cross join unnest($2::int[]) s (step) join made b on b.n = a.n - s.step
"""
_SAID = """
insert into session_utterance (tenant, memory, session)
select $1, m.id, lpad(to_hex(m.n / 20), 32, '0')::uuid from made m
"""

_INDEX = "vec_bge_small_en_v1_5_hnsw"
_LOADING = {"max_wal_size": "8GB", "checkpoint_timeout": "1h", "autovacuum": "off"}
_COPIED: dict[str, dict[str, str]] = {
    "memory": {"id": "id", "doc": "memory_doc"},
    "posting_entry": {"entry": "memory_doc"},
    "chunk": {"no": "chunk_no", "memory": "id"},
    "vec_bge_small_en_v1_5": {"chunk": "chunk_no"},
    "edge": {"id": "id", "src": "id", "dst": "id"},
    "session_utterance": {"memory": "id"},
}
"""What is copied, and which columns name a memory or have a number of a sequence."""
_ENDS = {"memory_doc": ("memory", "doc"), "chunk_no": ("chunk", "no")}


async def fill(url: str, sizes: dict[int, int], centres: Centres) -> bool:
    """Brings each tenant to as many memories as `sizes` says, through an owner's address.

    Answers whether anything was missing. The vector index is made anew after the rows, which takes
    a tenth of the time; only large tenants are in it.
    """
    connection = await asyncpg.connect(url, server_settings={"search_path": "reverie,public"})
    try:
        await register_vector(connection, schema="public")
        stand = {tenant: await _stand(connection, tenant) for tenant in sizes}
        lacking = [tenant for tenant, size in sizes.items() if stand[tenant] < size]
        if lacking:
            await _set(connection, {name: f"'{value}'" for name, value in _LOADING.items()})
            try:
                await _all(connection, sizes, lacking, centres)
            finally:
                await _set(connection, dict.fromkeys(_LOADING, "default"))
    finally:
        await connection.close()
    return bool(lacking)


async def _set(connection: Any, values: dict[str, str]) -> None:
    for name, value in values.items():
        await connection.execute(f"alter system set {name} = {value}")
    await connection.execute("select pg_reload_conf()")


async def _stand(connection: Any, tenant: int) -> int:
    counted = "select count(*) from memory where tenant = $1"
    found: int = await connection.fetchval(counted, tenant)
    return found


async def _all(
    connection: Any, sizes: dict[int, int], lacking: Sequence[int], centres: Centres
) -> None:
    await connection.execute("set synchronous_commit = off")
    await connection.execute(_STAGE)
    index: str = await connection.fetchval(f"select pg_get_indexdef('{_INDEX}'::regclass)")
    walked = any(sizes[tenant] > EXACT_SEARCH_LIMIT for tenant in lacking)
    if walked:
        await connection.execute(f"drop index {_INDEX}")
    model = next(iter(sizes))
    begun = time.perf_counter()
    for done, tenant in enumerate(lacking, 1):
        if tenant == model or sizes[tenant] > AT_ONCE:
            await _fill(connection, tenant, sizes[tenant], centres)
        else:
            await _copy(connection, model, tenant)
        took = time.perf_counter() - begun
        print(f"filled {done} of {len(lacking)} tenants, {took:.0f} s", flush=True)
    if walked:
        await connection.execute("set maintenance_work_mem = '2GB'")
        # As it is told, the index would be made on no partition.
        await connection.execute(index.replace(" ON ONLY ", " ON "))
    await connection.execute("vacuum analyze")


async def _copy(connection: Any, model: int, tenant: int) -> None:
    """All that is derived of the memories of one tenant, as another's."""
    async with connection.transaction():
        await connection.execute(f"set local reverie.tenant = '{tenant}'")
        moved = {name: await _reserved(connection, name, model) for name in _ENDS}
        for table, columns in _COPIED.items():
            await connection.execute(
                await _copying(connection, table, columns, moved), model, tenant
            )


async def _reserved(connection: Any, sequence: str, model: int) -> int:
    """How far the numbers of the copy are from those of the model."""
    table, column = _ENDS[sequence]
    ends = f"select min({column}), max({column}) from {table} where tenant = $1"
    low, high = await connection.fetchrow(ends, model)
    first = await connection.fetchval(f"select nextval('{sequence}')")
    await connection.execute(f"select setval('{sequence}', $1)", first + high - low)
    return int(first - low)


async def _copying(
    connection: Any, table: str, columns: dict[str, str], moved: dict[str, int]
) -> str:
    found = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0"
        " and not attisdropped and attgenerated = '' and attname <> 'tenant'",
        table,
    )
    names = [row["attname"] for row in found]
    taken = ", ".join(_taken(name, columns.get(name), moved) for name in names)
    return (
        f"insert into {table} (tenant, {', '.join(names)})"
        f" select $2::int, {taken} from {table} where tenant = $1"
        + (" order by term, entry" if table == "posting_entry" else "")
    )


def _taken(name: str, what: str | None, moved: dict[str, int]) -> str:
    """An id with the tenant's number at its end, a number moved on, else what stands there."""
    if what is None:
        return name
    if what == "id":
        return f"(left({name}::text, 28) || lpad(to_hex($2::int), 8, '0'))::uuid"
    return f"{name} + ({moved[what]}::bigint << {28 if name == 'entry' else 0})"


async def _fill(connection: Any, tenant: int, count: int, centres: Centres) -> None:
    for first in range(await _stand(connection, tenant), count, AT_ONCE):
        chance = np.random.default_rng((tenant, first))
        numbers = range(first, min(first + AT_ONCE, count))
        made = list(_made(numbers, centres, chance))
        await _add(connection, tenant, made, count > EXACT_SEARCH_LIMIT)


async def _add(connection: Any, tenant: int, made: list[tuple[Any, ...]], walked: bool) -> None:
    async with connection.transaction():
        await connection.execute("truncate made")
        await connection.copy_records_to_table(
            "made", records=made, columns=["n", "content", "words", "v"]
        )
        await connection.execute("analyze made")
        await connection.execute(f"set local reverie.tenant = '{tenant}'")
        more: dict[str, list[object]] = {_CHUNKS: [walked], _EDGES: [STEPS]}
        for statement in (_MEMORIES, _POSTINGS, _CHUNKS, _EDGES, _SAID):
            await connection.execute(statement, tenant, *more.get(statement, []))


def _made(
    numbers: range, centres: Centres, chance: np.random.Generator
) -> Iterator[tuple[int, str, str, HalfVector]]:
    for number in numbers:
        text = generated_texts.memory(number)
        vector = centres[number % len(centres)] + chance.normal(0, NOISE, centres.shape[1])
        unit = (vector / np.linalg.norm(vector)).astype(np.float16)
        yield number, text, index_text(text), HalfVector(unit)

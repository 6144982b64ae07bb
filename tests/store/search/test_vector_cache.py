"""In-memory vector search returns what the exact search in Postgres returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.asyncpg import register_vector

from reverie.domain.retrieval.candidates import SearchHit
from reverie.store.db.database import DEFAULT_VECTOR_TABLE, FREQUENT_READS, open_database
from reverie.store.search import tenant_cache
from reverie.store.search import vector_cache as near
from reverie.store.search.search import SearchFilter, SearchStore
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import PATH, add_tenants, principal

Vector = NDArray[np.float32]
COUNT, DIMS = 300, 384
CHANCE = np.random.default_rng(11)
PUT = """
with m as (
  insert into memory (tenant, id, scope, kind, tier, enriched_version, content, hash, words, terms,
                      confidence, source)
  select $1, u.id, $3, 'lesson', 'warm', 1, u.id::text, sha256(u.id::text::bytea), '', 0, 0.8,
         'agent' from (select gen_random_uuid() as id from generate_series(1, $4::int)) u
  returning id
), c as (
  insert into chunk (tenant, memory, ordinal, start, stop, hash)
  select $1, m.id, o.ordinal, 0, 1, sha256(m.id::text::bytea)
  from m cross join generate_series(0, 1) o (ordinal)
  returning no
), v as (select c.no, row_number() over (order by c.no) as place from c)
insert into vec_bge_small_en_v1_5 (tenant, chunk, v)
select $1, v.no, g.v from v join unnest($2::halfvec[]) with ordinality g (v, place) using (place)
"""


def _made(count: int) -> Vector:
    return CHANCE.normal(size=(count, DIMS)).astype(np.float32)


class Both:
    """A search with vectors in memory beside one without, of the same tenant."""

    def __init__(
        self, kept: SearchStore, plain: SearchStore, writer: asyncpg.Connection, tenant: int
    ) -> None:
        self.kept, self.plain, self.writer = kept, plain, writer
        self.who, self.tenant = principal(tenant, "one"), tenant

    async def put(self, scope: str, count: int = 20, vectors: Vector | None = None) -> None:
        """Writes memories of two chunks each."""
        made = _made(2 * count) if vectors is None else vectors
        await self.writer.execute(PUT, self.tenant, [HalfVector(v) for v in made], scope, count)

    async def same(
        self, *scopes: str, limit: int = 30, asked: Vector | None = None
    ) -> list[SearchHit]:
        """What both find, which is the same in the same order."""
        vector = _made(1)[0] if asked is None else asked
        only = SearchFilter(scopes or ["*"], ["active"])
        found = await self.kept.search_vectors(self.who, vector, only, limit)
        assert found == await self.plain.search_vectors(self.who, vector, only, limit)
        return found

    async def served(self) -> int:
        """How many searches what is kept answers, of one asked now."""
        asked = _made(1)[0]
        async with self.kept._db.tenant_reader(self.tenant) as t:
            args = (HalfVector(asked), ["*"], ["active"], 30, None, None)
            return len(await self.kept.vector_cache.search(t, asked, args, COUNT))


@pytest.fixture
async def both(database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    monkeypatch.setattr(near, "MIN_VECTORS", 100)
    monkeypatch.setattr(near, "MAX_NEW_VECTORS", 15)
    for pause in ("RELOAD_SECONDS", "RETRY_SECONDS", "LOAD_SHARE"):
        monkeypatch.setattr(tenant_cache, pause, 0.0)
    [tenant] = add_tenants(database.admin_url, "one")
    writer = await asyncpg.connect(database.service_url, server_settings={"role": "reverie_app"})
    try:
        await writer.execute(f"set search_path = reverie, public; set reverie.tenant = '{tenant}'")
        await register_vector(writer, schema="public")
        async with open_database(database.service_url, size=2, reader_size=2) as db:
            one = Both(SearchStore(db, 64), SearchStore(db), writer, tenant)
            await one.put("global", COUNT // 2)
            for _ in range(FREQUENT_READS + 1):
                await one.same()
            assert await one.served() == 0
            await one.kept.vector_cache.load_pending()
            yield one
    finally:
        await writer.close()


async def test_writes_deletions_and_moves_are_visible_at_once(both: Both) -> None:
    assert await both.served() == 30
    await both.same()
    asked = _made(1)[0]
    await both.put("project/p", 1, np.stack([asked, -asked]))
    best = (await both.same(asked=asked))[0]
    assert best.score > 0.999
    assert [one.id for one in await both.same("project/p", asked=asked)] == [best.id]
    assert await both.served() == 30
    await both.writer.execute(
        "update memory set status = 'archived' where tenant = $1 and id = $2", both.tenant, best.id
    )
    assert best.id not in [one.id for one in await both.same(asked=asked)]
    gone = [one.id for one in await both.same(limit=20)]
    for table, named in (("vec_bge_small_en_v1_5", "chunk"), ("chunk", "no")):
        await both.writer.execute(
            f"delete from {table} where tenant = $1 and {named} in"
            " (select no from chunk where tenant = $1 and memory = any ($2))",
            *(both.tenant, gone),
        )
    assert not {one.id for one in await both.same()} & {*gone}
    await both.same("session/none")
    await both.put("global", 20)
    await both.same()
    await both.kept.vector_cache.load_pending()
    assert await both.served() == 30
    await both.same()
    assert await both.kept.search_vectors(principal(both.tenant + 1, "two"), asked, ANY, 5) == []


ANY = SearchFilter(["*"], ["active"])


async def test_a_write_that_began_before_the_load_and_ended_after_it_is_visible(both: Both) -> None:
    asked = _made(1)[0]
    async with both.writer.transaction():
        await both.put("global", 1, np.stack([asked, -asked]))
        for _ in range(2):
            both.kept.vector_cache._request((both.tenant, DEFAULT_VECTOR_TABLE))
            await both.kept.vector_cache.load_pending()
        assert (await both.same(asked=asked))[0].score < 0.9
    assert (await both.same(asked=asked))[0].score > 0.999
    assert await both.served() == 30


async def test_vectors_of_another_table_or_a_backup_are_never_mistaken_for_cached_ones(
    both: Both, database: DatabaseUrls
) -> None:
    kept = both.kept.vector_cache._entries[both.tenant, DEFAULT_VECTOR_TABLE]
    # A table of the same name that was made anew has another number.
    kept.source = kept.source.rpartition(" ")[0] + " 1"
    assert await both.served() == 0
    assert not both.kept.vector_cache._entries
    await both.same()
    await both.kept.vector_cache.load_pending()
    assert await both.served() == 30
    with psycopg.connect(database.admin_url, options=PATH) as admin:
        admin.execute(
            "update vec_bge_small_en_v1_5 set inserted_xid = '9000000000' where tenant = %s",
            [both.tenant],
        )
    await both.same()
    async with both.kept._db.tenant_reader(both.tenant) as t:
        memories = [UUID(bytes=one) for one in kept.memories[:40].tolist()]
        near_by = (kept.chunks[:40].tolist(), kept.since, "another", memories)
        args = (HalfVector(_made(1)[0]), ["*"], ["active"], 30)
        [row] = await t.fetch_rows("search_vectors_candidates", *args, *near_by)
    assert (row["id"], row["same"], row["fresh"]) == (None, False, 0)


async def test_the_least_recently_used_entry_is_evicted(both: Both) -> None:
    kept = both.kept.vector_cache
    kept._capacity = next(iter(kept._entries.values())).nbytes
    kept._request((both.tenant, DEFAULT_VECTOR_TABLE))
    await kept.load_pending()
    assert list(kept._entries) == [(both.tenant, DEFAULT_VECTOR_TABLE)]
    kept._capacity -= 1
    kept._request((both.tenant, DEFAULT_VECTOR_TABLE))
    await kept.load_pending()
    assert not kept._entries
    await both.same()
    assert await both.served() == 0

"""In-memory full-text search returns what the same query in Postgres returns."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest

from reverie.domain.retrieval.candidates import SearchHit
from reverie.domain.text.index_terms import query_text
from reverie.store.db.database import FREQUENT_READS, open_database
from reverie.store.memories.edits import EditStore, MemoryChange
from reverie.store.memories.edits import build_content_fields as worded_anew
from reverie.store.memories.memories import MemoryStore
from reverie.store.search import posting_cache as worded
from reverie.store.search import tenant_cache
from reverie.store.search.corpus_counts import CorpusStats
from reverie.store.search.posting_cache import TABLE
from reverie.store.search.search import SearchFilter, SearchStore
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import PATH, Store, add_tenants, app_connection, principal
from tests.support.store_setup import new as made
from tests.support.store_setup import write as written

WORDS = (
    *("pool", "worker", "cache", "store", "index", "vector", "retry", "queue", "lock", "batch"),
    *("getUserById", "auth.ts", "连接池"),
)
CHANCE = random.Random(7)
ANY = SearchFilter(["*"], ["active", "superseded"])


def _text() -> str:
    number = CHANCE.randrange(10_000)
    return " ".join(CHANCE.choices(WORDS, k=CHANCE.randrange(2, 12))) + f" case {number}"


class Both:
    """A search with postings in memory beside one without, of the same tenant."""

    def __init__(self, store: Store) -> None:
        self.store, self.me = store, store.me
        self.kept, self.plain = SearchStore(store.db, words_mb=64), SearchStore(store.db)

    async def same(self, only: SearchFilter = ANY, limit: int = 20) -> list[SearchHit]:
        """What both find of a question, which is the same in the same order."""
        asked = query_text(" ".join(CHANCE.sample(WORDS, 3)))
        found = await self.kept.search_words(self.me, asked, only, limit)
        assert found == await self.plain.search_words(self.me, asked, only, limit)
        return found

    async def named(self, word: str) -> list[UUID]:
        """The memories that hold a word."""
        found = await self.kept.search_words(self.me, query_text(word), ANY, 9)
        assert found == await self.plain.search_words(self.me, query_text(word), ANY, 9)
        return [one.id for one in found]

    async def serves(self) -> bool:
        """Whether what is kept can answer now."""
        async with self.store.db.tenant_reader(self.me.tenant) as tenant:
            told = await self.kept.posting_cache.score(tenant, "pool", CorpusStats(300, 10))
        return told is not None

    async def read(self) -> None:
        """Reads all anew, once no transaction is older than what is to be in it.

        Transactions are numbered for all databases of a server: another test's may be under way.
        """
        async with asyncio.timeout(60):
            while True:
                self.kept.posting_cache._request((self.me.tenant, TABLE))
                await self.kept.posting_cache.load_pending()
                if await self.serves():
                    return
                await asyncio.sleep(0.05)

    async def change(self, memory: UUID, **fields: Any) -> None:
        """Changes a memory."""
        change = MemoryChange(fields, "test", "edited")
        await EditStore(self.store.db).change(self.me, memory, change, {})


@pytest.fixture
async def both(database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    monkeypatch.setattr(worded, "MIN_MEMORIES", 50)
    monkeypatch.setattr(worded, "MAX_CHANGED", 40)
    monkeypatch.setattr(worded, "CHANGED_SHARE", 5)
    for pause in ("RELOAD_SECONDS", "RETRY_SECONDS", "LOAD_SHARE"):
        monkeypatch.setattr(tenant_cache, pause, 0.0)
    one, two = add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url, size=3, reader_size=2) as db:
        me, other = principal(one, "one"), principal(two, "two")
        store = Store(db, MemoryStore(db), me, other, database.admin_url, database.service_url)
        tested = Both(store)
        await written(store, *(made(_text(), scope=f"project/{n % 3}") for n in range(200)))
        for _ in range(FREQUENT_READS + 1):
            await tested.same()
        assert not await tested.serves()
        await tested.read()
        yield tested


async def test_writes_edits_and_deletions_are_visible_at_once(both: Both) -> None:
    for only in (
        ANY,
        SearchFilter(["project/1"], ["active"]),
        SearchFilter(["session/none"], ["active"]),
    ):
        for limit in (1, 20, 300):
            await both.same(only, limit)
    [first, second] = await written(both.store, made("a zebra in the pool"), made("pool pool"))
    assert await both.named("zebra") == [first]
    await both.change(second, **worded_anew("two zebra, no pool", None, []))
    assert set(await both.named("zebra")) == {first, second}
    await both.change(first, **worded_anew("nothing of it", None, []))
    assert await both.named("zebra") == [second]
    await both.change(second, status="archived")
    assert await both.named("zebra") == []
    await both.change(second, status="active")
    assert await both.named("zebra") == [second]
    await both.change(second, status="deleted")
    assert await both.named("zebra") == []
    for _ in range(10):
        await both.same()
    assert await both.serves()


async def test_a_write_that_began_before_the_load_and_ended_after_it_is_visible(both: Both) -> None:
    async with app_connection(both.store.service_url, both.me.tenant) as writer:
        [memory] = await written(both.store, made("a zebra"))
        async with writer.transaction():
            await writer.execute(
                "select index_words(tenant, doc, 'gnu:1', 1) from memory where id = $1", memory
            )
            await writer.execute("update memory set words = 'gnu:1' where id = $1", memory)
            await both.read()
            assert await both.named("gnu") == []
        assert await both.named("gnu") == [memory]
    assert await both.serves()


async def test_after_many_changes_postgres_answers_until_the_next_load(both: Both) -> None:
    await written(both.store, *(made(_text()) for _ in range(21)))
    await both.same()
    assert both.kept.posting_cache._pending
    await written(both.store, *(made(_text()) for _ in range(20)))
    assert not await both.serves()
    await both.same()
    await both.read()
    await both.same()


async def test_deleted_memories_are_not_found(both: Both) -> None:
    gone = {one.id for one in await both.same()}
    with psycopg.connect(both.store.admin_url, options=PATH) as admin:
        admin.execute("delete from memory where id = any(%s)", [list(gone)])
    for _ in range(5):
        asked = query_text(" ".join(WORDS))
        found = await both.kept.search_words(both.me, asked, ANY, 300)
        assert not gone & {one.id for one in found}


async def test_postings_of_another_table_or_a_backup_are_never_mistaken_for_cached_ones(
    both: Both,
) -> None:
    kept = both.kept.posting_cache._entries[both.me.tenant, TABLE]
    with psycopg.connect(both.store.admin_url, options=PATH) as admin:
        admin.execute("alter table memory disable trigger memory_words_xid")
        admin.execute("update memory set words_xid = '9000000000'")
    await both.same()
    assert await both.serves()
    # A table of the same name that was made anew has another number.
    kept.source = kept.source.rpartition(" ")[0] + " 1"
    assert not await both.serves()
    assert not both.kept.posting_cache._entries
    await both.same()


async def test_a_tenant_without_words_and_other_tenants_are_not_mixed_up(both: Both) -> None:
    found = await both.kept.search_words(both.store.other, query_text("pool"), ANY, 9)
    assert found == []
    both.kept.posting_cache._request((both.store.other.tenant, TABLE))
    await both.kept.posting_cache.load_pending()
    assert (both.store.other.tenant, TABLE) not in both.kept.posting_cache._entries


def test_the_best_are_the_highest_scores_and_of_equal_ones_the_first_written() -> None:
    told = worded.DocumentScores(np.array([5, 3, 9, 7, 1]), np.array([2, 1, 2, 0, 1], np.float32))
    assert told.top(3) == worded.TopDocuments([5, 9, 1], [2.0, 2.0, 1.0], False)
    assert told.top(4) == worded.TopDocuments([5, 9, 1, 3], [2.0, 2.0, 1.0, 1.0], True)
    assert told.top() == told.top(4)

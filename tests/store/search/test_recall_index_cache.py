"""A recall index holds all that was committed, within its budget, or else Postgres answers."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.memory import NewMemory
from reverie.domain.retrieval import recall_index
from reverie.domain.retrieval.scoring import PINNED_FACTOR
from reverie.store.memories.enrichment import DerivedData, EmbeddedChunk, EnrichmentStore
from reverie.store.platform.administration import AdministrationStore
from reverie.store.search import recall_index_cache
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.pipeline.recall import recall
from tests.support.made_up_memories import MadeUpTenant
from tests.support.recall_engines import RecallEngines, ask, embed, open_engines
from tests.support.stack import eventually
from tests.support.store_setup import add_tenants, admin_rows, app_connection, new, principal, write

WRITES_BESIDE = 60
"""Writes of each of four writers: fewer than the index has rows to spare."""


def make_crowd() -> list[NewMemory]:
    """Memories of one word."""
    return [new(f"the pool of worker {n} is full") for n in range(20)]


@pytest.fixture
async def engines(
    database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RecallEngines]:
    for pause in ("RELOAD_SECONDS", "RETRY_SECONDS", "LOAD_SHARE"):
        monkeypatch.setattr(recall_index_cache, pause, 0)
    async with open_engines(database) as opened:
        for who in (opened.store.me, opened.store.other):
            await write(opened.store, *make_crowd(), who=who)
        yield opened


async def find(engines: RecallEngines, text: str, **fields: Any) -> list[UUID]:
    """The memories that the index finds."""
    result = await recall(engines.indexed, engines.store.me, ask(text, **fields))
    assert result.degraded == []
    return [hit.item.id for hit in result.hits]


async def put_vector(engines: RecallEngines, memory: UUID, text: str) -> None:
    """A memory gets the vector of a text."""
    slow = EnrichmentStore(engines.store.db)
    raw = await slow.load(engines.store.me.tenant, memory)
    assert raw is not None
    chunks = [EmbeddedChunk(0, 1, bytes(32), embed(text))]
    one = (engines.store.me.tenant, "one")
    assert await slow.write_derived(one, [DerivedData(raw, chunks, {})], 0) != [[]]


@pytest.mark.parametrize("writers", [0, 4])
async def test_a_write_is_found_by_words_at_once_and_by_meaning_with_its_vector(
    engines: RecallEngines, writers: int
) -> None:
    """Also while others write."""
    await engines.load_index()
    written = 0

    async def keep_writing(name: str) -> None:
        nonlocal written
        for _ in range(WRITES_BESIDE):
            await write(engines.store, new(f"heron {name} saw {written} frogs"))
            written += 1

    tasks = [asyncio.create_task(keep_writing(f"number{n}")) for n in range(writers)]
    try:
        for number in range(8 if writers else 4):
            [memory] = await write(engines.store, new(f"zebra{number} crosses"))
            assert await find(engines, f"zebra{number}") == [memory]
            assert memory not in await find(engines, f"okapi{number}")
            await put_vector(engines, memory, f"okapi{number}")
            assert (await find(engines, f"okapi{number}"))[0] == memory
            admin_rows(engines.store.admin_url, "delete from memory where id = %s", memory)
            assert await find(engines, f"zebra{number}") == []
            assert await engines.holds_index()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert written >= writers


async def test_a_score_says_nothing_of_memories_that_may_not_be_read(
    engines: RecallEngines,
) -> None:
    store = engines.store
    await write(store, *(new(f"a heron of lake {n}", scope="project/a") for n in range(4)))
    await write(store, new("a stork", scope="project/a"))
    await engines.load_index()

    async def list_scores() -> list[list[tuple[UUID, float]]]:
        results = await engines.ask_both(ask("heron", ["project/a"]))
        return [
            [(hit.item.id, hit.scored.raw_scores["words"]) for hit in result.hits]
            for result in results
        ]

    before = await list_scores()
    assert len(before[0]) == 4
    assert [one for one, _ in before[0]] == [one for one, _ in before[1]]
    scores = [[score for _, score in scored] for scored in before]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    await write(store, *(new(f"heron heron {n} far away", scope="project/b") for n in range(30)))
    assert await list_scores() == before
    await engines.load_index()
    assert await list_scores() == before
    # It is told by what may be read.
    await write(store, new("heron", scope="project/a"))
    after = await list_scores()
    assert dict(after[0])[before[0][0][0]] < before[0][0][1]


async def test_a_change_that_commits_late_is_seen(engines: RecallEngines) -> None:
    store = engines.store
    [memory] = await write(store, new("a zebra crosses"))
    await engines.load_index()

    async def find_factors() -> list[float | None]:
        results = await engines.ask_both(ask("zebra"))
        return [result.hits[0].scored.factors.get("tier") for result in results]

    async with app_connection(store.service_url, store.me.tenant) as writer:
        transaction = writer.transaction()
        await transaction.start()
        pin = "update memory set pinned = true where tenant = $1 and id = $2"
        await writer.execute(pin, store.me.tenant, memory)
        for number in range(3):
            # Others commit meanwhile, and the index is brought up to date or loaded.
            await write(store, new(f"gnu {number}"))
            assert len(await find(engines, "gnu")) == number + 1
            if number == 1:
                engines.indexes._request(*_key_of(engines))
                await engines.load_requested()
            assert await find_factors() == [None, None]
        await transaction.commit()
    assert await find_factors() == [PINNED_FACTOR, PINNED_FACTOR]
    assert await engines.holds_index()


def _key_of(engines: RecallEngines, who: Principal | None = None) -> tuple[Any, Any]:
    model = engines.plain.embedding_models.get_cached((who or engines.store.me).tenant)
    return ((who or engines.store.me).tenant, model.vector_table), model


async def test_uses_count_from_the_next_hour_on(engines: RecallEngines) -> None:
    tenant = MadeUpTenant(engines.store, random.Random(1))
    tenant.ids = await write(engines.store, *(new(f"the zebra of herd {n}") for n in range(5)))
    admin_rows(engines.store.admin_url, "update memory set confidence = 0.5")
    await engines.load_index()

    async def list_confidences() -> list[set[float]]:
        results = await engines.ask_both(ask("zebra"))
        return [{hit.scored.factors["confidence"] for hit in result.hits} for result in results]

    await tenant.use()
    assert await list_confidences() == [{0.5}, {0.5}]
    admin_rows(engines.store.admin_url, "update memory_use set hour = hour - interval '1 hour'")
    cached = engines.indexes._cached[_key_of(engines)[0]]
    cached.hour -= timedelta(hours=1)
    indexed, plain = await list_confidences()
    assert indexed == plain
    assert min(plain) > 0.5


async def test_after_a_restart_of_the_server_the_index_is_loaded_again(
    engines: RecallEngines,
) -> None:
    await engines.load_index()
    cached = engines.indexes._cached[_key_of(engines)[0]]
    # When the server started, when a crash reset its statistics, the table.
    for source in (f"{cached.source}1", f"2000-01-01 {cached.source.partition(' ')[2]}"):
        engines.indexes._cached[_key_of(engines)[0]].source = source
        assert not await engines.holds_index()
        assert len(await find(engines, "worker")) == 10
        await engines.load_index()


async def test_an_index_whose_changes_may_be_deleted_is_loaded_again(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows older, too, where it could not ask for changes."""
    now, max_age = [1_000_000.0], recall_index_cache.MAX_AGE_SECONDS
    monkeypatch.setattr(recall_index_cache, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def refuse(*_: object) -> None:
        raise Unavailable("Postgres", "try again shortly")

    await engines.load_index()
    now[0] += max_age - 1
    assert await engines.holds_index()
    now[0] += max_age + 1
    assert not await engines.holds_index()
    await engines.load_index()
    for _ in range(2):
        now[0] += max_age / 2
        with monkeypatch.context() as patch:
            patch.setattr(engines.store.db, "tenant_reader", refuse)
            with pytest.raises(Unavailable):
                await engines.holds_index()
    now[0] += 1
    assert not await engines.holds_index()


async def test_without_what_changed_postgres_answers_and_the_index_is_named(
    engines: RecallEngines,
) -> None:
    await engines.load_index()
    admin_rows(engines.store.admin_url, "alter table memory_change rename to elsewhere")
    result = await recall(engines.indexed, engines.store.me, ask("worker"))
    assert (result.degraded, len(result.hits)) == (["index"], 10)
    admin_rows(engines.store.admin_url, "alter table elsewhere rename to memory_change")
    assert len(await find(engines, "worker")) == 10


async def test_with_more_changes_than_fit_postgres_answers_until_the_next_load(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_index_cache, "MAX_CHANGES", 6)
    await engines.load_index()
    await write(engines.store, *(new(f"a zebra {n}") for n in range(6)))
    assert await engines.holds_index()
    await write(engines.store, *(new(f"a gnu {n}") for n in range(7)))
    assert len(await find(engines, "gnu")) == 7
    assert not await engines.holds_index()
    await engines.load_index()
    assert len(await find(engines, "gnu")) == 7


async def test_an_index_without_rows_for_new_memories_is_loaded_again(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_index, "MIN_SPARE", 3)
    await engines.load_index()
    for number in range(4):
        await write(engines.store, new(f"a gnu {number}"))
        assert len(await find(engines, "gnu")) == number + 1
    assert not await engines.holds_index()
    await engines.load_index()
    assert len(await find(engines, "gnu")) == 4


async def test_an_index_of_which_much_has_changed_is_loaded_anew_beside_it(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_index, "MIN_SPARE", 20)
    await engines.load_index()
    first = engines.indexes._cached[_key_of(engines)[0]].index
    await write(engines.store, *(new(f"a gnu {n}") for n in range(8)))
    assert await engines.holds_index()
    await engines.load_requested()
    assert await engines.holds_index()
    assert engines.indexes._cached[_key_of(engines)[0]].index is not first
    assert len(await find(engines, "gnu")) == 8


async def test_the_budget_evicts_the_index_that_was_asked_for_longest_ago(
    engines: RecallEngines,
) -> None:
    [three] = add_tenants(engines.store.admin_url, "three")
    first, second, third = engines.store.me, engines.store.other, principal(three, "three")
    await write(engines.store, *make_crowd(), who=third)
    await engines.load_index(first)
    await engines.load_index(second)
    cached = engines.indexes._cached
    engines.indexes._capacity = sum(one.index.nbytes for one in cached.values()) + 1_000
    assert await engines.holds_index(first)
    await engines.load_index(third)
    assert set(cached) == {_key_of(engines, who)[0] for who in (first, third)}


async def test_an_index_larger_than_the_budget_evicts_nothing(engines: RecallEngines) -> None:
    first, second = engines.store.me, engines.store.other
    texts = (" ".join(f"word{n}x{place}" for place in range(300)) for n in range(20))
    await write(engines.store, *map(new, texts), who=second)
    await engines.load_index(first)
    size = engines.indexes._cached[_key_of(engines, first)[0]].index.nbytes
    engines.indexes._capacity = size + 1_000
    for _ in range(2):
        assert not await engines.holds_index(second)
        await engines.load_requested()
    assert await engines.holds_index(first)
    assert not await engines.holds_index(second)


async def test_an_index_that_cannot_fit_or_has_no_budget_is_never_loaded(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def build(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(asyncio, "to_thread", build)
    for limit, value in (("MAX_MEMORIES", 10), ("BYTES_PER_MEMORY", 10_000_000)):
        with monkeypatch.context() as patch:
            patch.setattr(recall_index_cache, limit, value)
            assert not await engines.holds_index()
            await engines.load_requested()
            assert not await engines.holds_index()
            assert len(await find(engines, "worker")) == 10
    engines.indexes._capacity = 0
    assert not await engines.holds_index()
    await engines.load_requested()
    assert not await engines.holds_index()


async def test_indexes_are_loaded_in_the_background_after_a_failure_too(
    engines: RecallEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, released = engines.store.db.snapshot, threading.Semaphore(0)
    errors = [Unavailable("Postgres", "try again shortly")]

    def fail_once(tenant: int) -> Any:
        if errors:
            raise errors.pop()
        return snapshot(tenant)

    monkeypatch.setattr(engines.store.db, "snapshot", fail_once)
    loading = asyncio.create_task(engines.indexes.run(released.release))
    try:
        await eventually(engines.holds_index)
        assert all([await asyncio.to_thread(released.acquire, True, 60) for _ in range(2)])
    finally:
        loading.cancel()


async def test_an_index_holds_its_tenant_alone_and_an_empty_one_what_comes(
    engines: RecallEngines,
) -> None:
    [three] = add_tenants(engines.store.admin_url, "three")
    third = principal(three, "three")
    await engines.load_index(third)
    for who in (engines.store.me, engines.store.other, third):
        [memory] = await write(engines.store, new("a zebra"), who=who)
        await engines.load_index(who)
        result = await recall(engines.indexed, who, ask("zebra"))
        assert [hit.item.id for hit in result.hits] == [memory]
    assert await engines.holds_index(third)


async def test_the_deletion_of_a_tenant_records_no_changes(engines: RecallEngines) -> None:
    count = "select count(*) from memory_change where tenant = %s"
    url, other = engines.store.admin_url, engines.store.other
    assert admin_rows(url, count, other.tenant) != [(0,)]
    async for _ in AdministrationStore(engines.store.db).delete_tenant(other, batch=7):
        pass
    assert admin_rows(url, count, other.tenant) == [(0,)]
    assert admin_rows(url, count, engines.store.me.tenant) != [(0,)]

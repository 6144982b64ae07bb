"""`reverie reindex` rebuilds all derived data and resumes after a kill."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import psycopg
import pytest

from reverie.domain.core.errors import Unavailable
from reverie.store.memories.enrichment import EnrichmentStore
from reverie.store.search.reindex import ReindexStore
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.ingest.enrich import derivation_timeout, enrichment, reindex
from reverie_services.ingest.enrich.reindex import (
    ReindexDependencies,
    ReindexTarget,
    reindex_tenant,
)
from tests.support.commands import command
from tests.support.import_files import export_file, memory_line, send_import
from tests.support.recall_engines import MadeUpModels
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import PATH, Store, admin_rows, new, write

TEXTS = (
    "The pool in src/db/pool.ts leaks connections because the timeout is never cleared",
    "We decided to use Postgres for invoices in src/billing/invoice.ts since joins matter",
    "数据库连接池的大小由 src/db/pool.ts 决定",
    "getUserById in src/users/repo.ts reads through the cache of the session store",
    "Always run the linter before a commit of src/billing/invoice.ts",
)
QUERIES = (
    "connection pool leak",
    "连接池",
    "get user by id",
    "invoices joins",
    "apples",
    "receipt",
)
DERIVED = {
    "posting": "select tenant, term, doc, tf, len from posting",
    "turn_posting": "select tenant, term, doc, tf, len from turn_posting",
    "memory": "select id, words::text, terms from memory where status <> 'deleted'",
    "turn": "select id, terms from turn",
    "chunk": "select memory, ordinal, start, stop, hash from chunk",
    "vector": "select c.memory, c.ordinal, v.v::text from chunk c"
    " join vec_bge_small_en_v1_5 v on v.tenant = c.tenant and v.chunk = c.no",
    "anchor": "select project, path, name from anchor",
    "touches": "select e.src, m.content from edge e join memory m on m.id = e.dst"
    " where e.kind = 'touches' and e.known_to is null",
}


@pytest.fixture
async def stack(database: DatabaseUrls, nats_url: str) -> AsyncIterator[Stack]:
    """A system of the test's own: all tables are damaged. It computes ranks at once."""
    async with running_stack(database, nats_url, model_home(), scheduler_interval=0.2) as made:
        yield made


def _read_derived(stack: Stack) -> dict[str, list[str]]:
    rows = {name: admin_rows(stack.admin_url, query) for name, query in DERIVED.items()}
    return {name: sorted(map(repr, found)) for name, found in rows.items()}


def _damage(stack: Stack) -> None:
    with psycopg.connect(stack.admin_url, options=PATH) as connection:
        for statement in (
            "delete from posting where term % 2 = 0",
            "update posting_entry set entry = entry + (3 << 20)",
            "insert into posting_entry select tenant, 42, pack_posting(doc, 1, 1) from memory"
            " where words <> ''",
            "insert into posting_entry select distinct tenant, 43, pack_posting(999999, 1, 1)"
            " from memory",
            "delete from turn_posting where term % 2 = 0",
            "insert into turn_posting_entry select tenant, 42, pack_posting(doc, 1, 1) from turn",
            "update turn set terms = 7",
            "update memory set words = '', terms = 0",
            "delete from vec_bge_small_en_v1_5 where chunk % 2 = 0",
            "update vec_bge_small_en_v1_5 set v = (select v from vec_bge_small_en_v1_5 limit 1)",
            "delete from chunk where no % 3 = 0",
            "delete from anchor",
            "update edge set known_to = now() where kind = 'touches'",
        ):
            connection.execute(statement)


def _build_command(url: str, *arguments: str) -> tuple[str, ...]:
    settings = (f"database_url={url}", f"home={model_home()}")
    sets = [part for one in settings for part in ("--set", one)]
    return ("reindex", "--json", *sets, *arguments)


async def _reindex(url: str, *arguments: str) -> Any:
    code, told, shown = await command({}, *_build_command(url, *arguments))
    assert code == 0, shown
    return json.loads(told), shown


async def _recall_all(stack: Stack) -> list[list[tuple[str, float]]]:
    async def ranked() -> bool:
        return admin_rows(stack.admin_url, "select count(*) from edge_change") == [(0,)]

    await eventually(ranked)
    body = {"include": ["turns"], "limit": 20}
    answers = [await stack.post("/v1/recall", {"query": query, **body}) for query in QUERIES]
    return [[(one["id"], one["score"]) for one in answer["memories"]] for answer in answers]


def _check_same(one: list[list[tuple[str, float]]], other: list[list[tuple[str, float]]]) -> None:
    """The same hits in the same order; scores may fade by a hair while the test runs."""
    for hits, found in zip(one, other, strict=True):
        assert [hit for hit, _ in hits] == [hit for hit, _ in found]
        assert [score for _, score in hits] == pytest.approx([s for _, s in found], abs=1e-3)


async def _fill(stack: Stack) -> None:
    items = [{"content": text, "scope": "project/shop", "tags": ["tag"]} for text in TEXTS]
    await stack.post("/v1/remember/batch", {"items": items})
    asked = {"record": {"problem": "The till of the shop prints every receipt twice."}}
    await send_import(stack, export_file(memory_line("`flush()` ran again.", metadata=asked)))
    session = await stack.post("/v1/sessions/start", {"agent": "ann", "project": "shop"})
    turns = [
        {"role": "user", "content": "Where do the apples of the shop come from?"},
        {"role": "tool", "tool": "Read", "content": "apples apples apples"},
        {"role": "assistant", "content": "The apples come from the store in Kent."},
    ]
    await stack.post("/v1/turns", {"session": session["session"], "turns": turns})
    await stack.settled()


async def test_reindexing_restores_derived_data_and_recall_answers_as_before(stack: Stack) -> None:
    await _fill(stack)
    before, found = _read_derived(stack), await _recall_all(stack)
    assert all(before.values())
    _damage(stack)
    assert all(_read_derived(stack)[name] != before[name] for name in before)
    done, shown = await _reindex(stack.admin_url, "--tenant", "default")
    counts = {"words": 6, "turns": 3, "anchors": 6, "vectors": 6}
    assert done == {"default": counts}
    assert "default: vectors 6 of 6" in shown
    after = _read_derived(stack)
    assert {name for name in before if before[name] != after[name]} == set()
    _check_same(await _recall_all(stack), found)
    own = "select id from memory where kind not in ('file', 'entity') order by id"
    ids = admin_rows(stack.admin_url, own)
    admin_rows(
        stack.admin_url,
        "insert into reindex_progress select id, 'words', %s from tenant where name = 'default'",
        ids[-2][0],
    )
    done, _ = await _reindex(stack.admin_url, "--parts", "words,anchors")
    assert done["default"]["words"] == 1
    assert _read_derived(stack) == after
    assert admin_rows(stack.admin_url, "select * from reindex_progress") == []


async def test_an_interrupted_reindex_resumes_and_leaves_nothing_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No service runs: the slow path has reached none of the memories."""
    monkeypatch.setattr(reindex, "BATCH_SIZE", 5)
    await write(store, *(new(f"See src/part{n}.py", scope="project/shop") for n in range(12)))
    what = ("--tenant", "one", "--parts", "anchors")
    save_position, url = ReindexStore.save_position, store.admin_url

    async def save_and_break_off(self: ReindexStore, *place: Any) -> None:
        await save_position(self, *place)
        raise Unavailable("the process", "it was stopped")

    with monkeypatch.context() as patch:
        patch.setattr(ReindexStore, "save_position", save_and_break_off)
        assert (await command({}, *_build_command(url, *what)))[0] != 0
    [(_, part, _)] = admin_rows(url, "select * from reindex_progress")
    assert part == "anchors"
    done, _ = await _reindex(url, *what)
    assert done == {"one": {"anchors": 7}}
    touched = "select count(*), count(distinct src), count(distinct dst) from edge"
    assert admin_rows(url, touched) == [(12, 12, 12)]
    assert admin_rows(url, "select * from reindex_progress") == []


class OneModel(MadeUpModels):
    """The first model, made up of words, that is always loaded."""

    name = "bge-small-en-v1.5"
    sparse_encoder = None

    async def load(self, name: str) -> None:
        """It is there."""


async def test_a_text_whose_embedding_is_cut_keeps_its_vectors(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrichment, "MAX_BATCH_TEXTS", 2)
    text = "\n\n".join(f"Part {n} of the manual explains lamp {n}. " * 40 for n in range(6))
    await write(store, new(text), new("A lamp is lit at dusk."))
    deps = ReindexDependencies(
        cast("Any", OneModel()), EnrichmentStore(store.db), ReindexStore(store.db)
    )

    async def list_vectors() -> list[Any]:
        await reindex_tenant(deps, store.me.tenant, [ReindexTarget.VECTORS], lambda *_: None)
        return admin_rows(store.admin_url, f"{DERIVED['vector']} order by 1, 2")

    before = await list_vectors()
    assert len(before) > 4
    monkeypatch.setattr(derivation_timeout, "EMBEDDING_SECONDS", 0.0)
    assert await list_vectors() == before

"""Vector search and neighbour expansion, compared with numpy and the stored edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import pytest
from numpy.typing import NDArray

from reverie.domain.access.principals import Principal
from reverie.domain.core.kinds import EdgeKind, Kind
from reverie.domain.core.memory import NewEdge
from reverie.domain.retrieval.candidates import EDGE_KINDS, NeighbourEdges
from reverie.domain.retrieval.ranking_facts import ACTIVE, KINDS, list_ids
from reverie.store.memories.duplicates import DuplicateStore
from reverie.store.memories.enrichment import DerivedData, EmbeddedChunk, EnrichmentStore
from reverie.store.search import corpus_counts
from reverie.store.search.corpus_counts import EXACT_SEARCH_LIMIT, VectorCounts
from reverie.store.search.embedding_models import EmbeddingModelStore, TenantModel
from reverie.store.search.search import SearchFilter, SearchStore
from tests.support.store_setup import (
    Store,
    admin_rows,
    derived,
    docs_of,
    files_of,
    ids_of,
    new,
    principal,
    write,
)


def test_the_index_is_used_where_the_tenant_owns_much_of_what_it_returns() -> None:
    limit = EXACT_SEARCH_LIMIT
    for own, around in ((0, 0), (limit, limit), (limit + 1, 150_000), (100_000, 5_000_000)):
        assert VectorCounts(own, around).prefers_exact_search, (own, around)
    for own, around in (
        (limit + 1, limit),
        (limit + 1, -1),
        (100_000, 150_000),
        (200_000, 9_000_000),
    ):
        assert not VectorCounts(own, around).prefers_exact_search, (own, around)


ANY = SearchFilter(["*"], ["active"])
Vector = NDArray[np.float32]


@pytest.fixture
def vectors() -> Vector:
    made = np.random.default_rng(5).normal(size=(40, 384))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


async def _embed(store: Store, memory: UUID, *chunks: Vector) -> None:
    """The slow path's write for a memory of `one`, with a vector for each chunk."""
    slow = EnrichmentStore(store.db)
    raw = await slow.load(store.me.tenant, memory)
    assert raw is not None
    pieces = [EmbeddedChunk(n, n + 1, bytes([n]) * 32, v) for n, v in enumerate(chunks)]
    told = await derived(slow, store.me.tenant, DerivedData(raw, pieces, {}))
    assert told == ["memory.one.enriched"]


async def test_exact_search_orders_memories_by_the_cosine_of_their_nearest_chunk(
    store: Store, vectors: Vector
) -> None:
    ids = await write(store, *(new(f"memory {n}") for n in range(12)))
    for n, memory in enumerate(ids):
        await _embed(store, memory, *vectors[n * 3 : n * 3 + 3])
    asked = vectors[39]
    nearest = [float(max(vectors[n * 3 : n * 3 + 3] @ asked)) for n in range(12)]
    found = await SearchStore(store.db).search_vectors(store.me, asked, ANY, 5)
    best = sorted(zip(nearest, ids, strict=True), reverse=True)[:5]
    assert ids_of(store, found.docs) == [memory for _, memory in best]
    assert found.scores.tolist() == pytest.approx([s for s, _ in best], abs=2e-3)


async def test_vectors_of_a_large_tenant_are_found_before_and_after_indexing(
    store: Store, vectors: Vector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_counts, "EXACT_SEARCH_LIMIT", 5)
    monkeypatch.setattr(corpus_counts, "INDEX_WALK_COST", 0)
    ids = await write(store, *(new(f"memory {n}") for n in range(12)))
    for n, memory in enumerate(ids):
        await _embed(store, memory, vectors[n])
    models, tenant = EmbeddingModelStore(store.db), store.me.tenant
    nearest = sorted(range(12), key=lambda n: -float(vectors[n] @ vectors[39]))
    likest = [ids[n] for n in nearest[:5]]
    for put in (0, 4, 8):
        assert await models.index_vectors(tenant, TenantModel(), put) == put
        found = await SearchStore(store.db).search_vectors(store.me, vectors[39], ANY, 5)
        assert ids_of(store, found.docs) == likest, put
    assert await models.index_vectors(tenant, TenantModel(), 8) == 0
    assert await models.index_vectors(store.other.tenant, TenantModel(), 8) == 0
    near = await DuplicateStore(store.db).load_candidates(tenant, likest[:1])
    [alike] = await DuplicateStore(store.db).find_similar(tenant, near, 3)
    assert max(one.cosine or 0 for one in alike) == alike[0].cosine


async def test_vectors_of_an_earlier_text_do_not_count(store: Store, vectors: Vector) -> None:
    edited, other = await write(store, new("the old text"), new("another"))
    await _embed(store, edited, vectors[0])
    await _embed(store, other, vectors[1])
    search = SearchStore(store.db)
    found = await search.search_vectors(store.me, vectors[0], ANY, 5)
    assert ids_of(store, found.docs) == [edited, other]
    change = f"update memory set version = 2, content = 'new' where id = '{edited}'"
    admin_rows(store.admin_url, change)
    found = await search.search_vectors(store.me, vectors[0], ANY, 5)
    assert ids_of(store, found.docs) == [other]
    await _embed(store, edited, vectors[2])
    found = await search.search_vectors(store.me, vectors[2], ANY, 5)
    assert ids_of(store, found.docs)[0] == edited


async def test_a_memory_of_many_chunks_does_not_crowd_out_others(
    store: Store, vectors: Vector
) -> None:
    long, short = await write(store, new("long"), new("short"))
    await _embed(store, long, *([vectors[0]] * 30))
    await _embed(store, short, vectors[1])
    found = await SearchStore(store.db).search_vectors(store.me, vectors[0], ANY, 2)
    assert ids_of(store, found.docs) == [long, short]


async def test_vectors_are_found_only_in_readable_memories(store: Store, vectors: Vector) -> None:
    here, there = await write(store, new("a", scope="project/p"), new("b", scope="project/q"))
    for memory in (here, there):
        await _embed(store, memory, vectors[0])
    search = SearchStore(store.db)
    for only, expected in (
        (SearchFilter(["project/p"], ["active"]), [here]),
        (SearchFilter(["project/*"], ["active"], ["bug"]), []),
        (SearchFilter(["project/*"], ["superseded"]), []),
    ):
        found = await search.search_vectors(store.me, vectors[0], only, 9)
        assert ids_of(store, found.docs) == expected
    assert not len(await search.search_vectors(store.other, vectors[0], ANY, 9))


async def test_enriching_again_replaces_derived_data(store: Store, vectors: Vector) -> None:
    [memory] = await write(store, new("twice"))
    for count in (3, 1):
        await _embed(store, memory, *vectors[:count])
        admin_rows(store.admin_url, "update memory set version = version + 1 returning 1")
    corpus_counts = admin_rows(
        store.admin_url,
        "select (select count(*) from chunk), (select count(*) from vec_bge_small_en_v1_5)",
    )
    assert corpus_counts == [(1, 1)]


async def test_a_memory_changed_meanwhile_is_not_enriched_from_its_old_text(
    store: Store, vectors: Vector
) -> None:
    slow = EnrichmentStore(store.db)
    [memory] = await write(store, new("old", key="k"))
    raw = await slow.load(store.me.tenant, memory)
    assert raw is not None
    await write(store, new("new", key="k", supersede_reason="newer"))
    pieces = [EmbeddedChunk(0, 1, b"x" * 32, vectors[0])]
    assert await derived(slow, store.me.tenant, DerivedData(raw, pieces, {})) == []
    assert admin_rows(store.admin_url, "select count(*) from chunk") == [(0,)]


async def test_existing_vectors_are_recognized_by_the_hash_of_their_text(
    store: Store, vectors: Vector
) -> None:
    [memory] = await write(store, new("known"))
    await _embed(store, memory, vectors[0])
    slow = EnrichmentStore(store.db)
    known = await slow.load_embeddings(store.me.tenant, [bytes(32), b"?" * 32], TenantModel())
    assert list(known) == [bytes(32)]
    assert known[bytes(32)].vector == pytest.approx(vectors[0], abs=1e-3)
    assert await slow.load_embeddings(store.other.tenant, [bytes(32)], TenantModel()) == {}


async def _star(store: Store, weights: Sequence[float], **fields: str) -> tuple[UUID, list[UUID]]:
    """A memory with one relation of each weight to another memory."""
    far = await write(store, *(new(f"far {n} {fields}", **fields) for n in range(len(weights))))
    edges = tuple(
        NewEdge(to, EdgeKind.RELATES_TO, weight) for to, weight in zip(far, weights, strict=True)
    )
    [near] = await write(store, new(f"near {fields}", edges=edges))
    return near, far


async def _links(
    store: Store, memory: UUID, scopes: Sequence[str], fan_out: int, who: Principal | None = None
) -> list[tuple[UUID, UUID, EdgeKind, float]]:
    """The edges around a memory: both ends, kind and weight."""
    found: NeighbourEdges = await SearchStore(store.db).load_edges_around(
        who or store.me, np.array(docs_of(store, memory)), scopes, fan_out
    )
    kinds = [EDGE_KINDS[kind] for kind in found.kinds]
    ends = ids_of(store, found.near), ids_of(store, found.far)
    return list(zip(*ends, kinds, found.weights.tolist(), strict=True))


async def test_of_many_neighbours_the_strongest_are_kept_always_the_same(store: Store) -> None:
    weights = [round(0.02 * n, 2) for n in range(1, 31)]
    near, far = await _star(store, weights)
    links = await _links(store, near, ["*"], 5)
    assert [link[1] for link in links] == far[:-6:-1]
    [back] = await _links(store, far[0], ["*"], 5)
    assert back[:3] == (far[0], near, EdgeKind.RELATES_TO)
    assert back[3] == pytest.approx(0.02)
    equal, _ = await _star(store, [0.5] * 20, scope="project/equal")
    asked = [await _links(store, equal, ["*"], 7) for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]
    assert len(asked[0]) == 7
    assert await _links(store, equal, ["*"], 7, store.other) == []


async def test_unreadable_neighbours_take_no_place(store: Store) -> None:
    near, hidden = await _star(store, [1.0] * 6, scope="agent/bob")
    [open_] = await write(store, new("open", edges=(NewEdge(near, EdgeKind.RELATES_TO, 0.5),)))
    admin_rows(store.admin_url, "update memory set status = 'deleted' where id = %s", hidden[0])
    assert [link[1] for link in await _links(store, near, ["global"], 3)] == [open_]


async def test_touched_files_take_no_place_among_the_neighbours(store: Store) -> None:
    near, far = await _star(store, [0.3])
    slow = EnrichmentStore(store.db)
    raw = await slow.load(store.me.tenant, near)
    assert raw is not None
    raw = replace(raw, scope="project/p")
    nodes = await files_of(slow, store.me.tenant, raw, *(f"src/{n}.py" for n in range(10)))
    touches: dict[UUID, dict[str, str]] = {node: {} for node in nodes.values()}
    await derived(slow, store.me.tenant, DerivedData(raw, None, touches))
    assert [link[1] for link in await _links(store, near, ["*"], 4)] == far


async def test_edges_among_memories_have_both_ends_in_the_list(store: Store) -> None:
    near, far = await _star(store, [0.5, 0.6])
    found = await SearchStore(store.db).load_edges_among(store.me, [near, far[0], uuid4()])
    assert [(src, dst, kind) for _, src, dst, kind, _ in found] == [(near, far[0], "relates_to")]


async def test_loading_leaves_out_unreadable_memories(store: Store) -> None:
    mine, hidden = await write(store, new("mine"), new("hidden", scope="agent/bob"))
    narrow = principal(store.me.tenant, "one")
    found = await SearchStore(store.db).load_memories(narrow, [mine, hidden, uuid4()], ["global"])
    assert set(found) == {mine}


async def test_facts_are_those_of_readable_memories_and_say_what_the_filter_lets_through(
    store: Store,
) -> None:
    ids = await write(
        store,
        new("one", scope="project/p", kind=Kind.BUG, tags=("deploy",), pinned=True),
        new("two", scope="project/p", kind=Kind.LESSON),
        new("hidden", scope="agent/bob"),
    )
    admin_rows(store.admin_url, "update memory set status = 'archived' where id = %s", ids[1])
    [theirs] = await write(store, new("theirs"), who=store.other)
    docs = docs_of(store, *ids, theirs)
    search = SearchStore(store.db)
    only = SearchFilter(["project/p"], ["active"])
    table = await search.load_facts(store.me, np.array([*docs, 2**40]), only)
    assert list_ids(table.records) == ids[:2]
    assert table.records["doc"].tolist() == docs[:2]
    assert table.passes.tolist() == [True, False]
    assert [table.scope_names[number] for number in table.scopes] == ["project/p"] * 2
    assert [KINDS[number] for number in table.records["kind"]] == [Kind.BUG, Kind.LESSON]
    assert (table.records["status"] == ACTIVE).tolist() == [True, False]
    for fields, passes in (
        ({"status": ["archived"]}, [False, True]),
        ({"status": ["active", "archived"], "kinds": ["lesson"]}, [False, True]),
        ({"tags": ["deploy"]}, [True, False]),
    ):
        narrow = replace(only, **fields)  # type: ignore[arg-type]
        found = await search.load_facts(store.me, np.array(docs), narrow)
        assert found.passes.tolist() == passes, fields


async def test_ranks_count_in_the_scope_for_which_they_were_computed(store: Store) -> None:
    ids = await write(store, *(new(f"ranked {n}") for n in range(4)))
    for memory, rank in zip(ids, (0.5, 1, None, 0.7), strict=True):
        if rank:
            admin_rows(
                store.admin_url,
                "insert into memory_rank (tenant, memory, scope, rank)"
                " values (%s, %s, 'global', %s)",
                *(store.me.tenant, memory, rank),
            )
    admin_rows(store.admin_url, "update memory set scope = 'project/p' where id = %s", ids[3])
    found = await SearchStore(store.db).load_facts(store.me, np.array(docs_of(store, *ids)), ANY)
    assert found.records["rank"].tolist() == pytest.approx([0.5, 1.0, 0.0, 0.0])

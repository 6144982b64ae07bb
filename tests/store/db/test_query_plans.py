"""No frequent statement reads a large table whole, at 40,000 memories."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import psycopg
import pytest
from pgvector import HalfVector

from reverie.domain.core.ids import new_id, short_id
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import NewEdge
from reverie.domain.retrieval.candidates import EDGE_KINDS
from reverie.domain.retrieval.ranking_facts import KINDS, list_ids
from reverie.store.db import row_mapping
from reverie.store.db.connections import READER_SETUP, build_enter_sql, prepare_connection
from reverie.store.db.database import open_database
from reverie.store.db.queries import get_query
from reverie.store.search.corpus_counts import COUNT_LIMIT, VectorCounts
from reverie.store.search.embedding_models import encode_sparse_vector
from reverie.store.search.search import SearchFilter, SearchStore
from reverie.testing.servers import TestRun, fresh_database
from tests.store.db.large_tenant import VECTORS, load_all
from tests.store.db.query_plans import check, kept_plan, nodes, relations
from tests.support.store_setup import PATH, add_tenants, admin_rows, app_connection, new, principal

QUESTION = "w60 w200 w900 w77"
COMMON = "w1 w2 w3 w4 w5"
HERE = ["project/p1/*", "global"]
_KINDS, _EDGE_KINDS = [kind.value for kind in KINDS], [kind.value for kind in EDGE_KINDS]


@dataclass(frozen=True)
class Loaded:
    """The database, the big tenant, and some of its rows."""

    admin_url: str
    service_url: str
    tenant: int
    small: int
    ids: list[UUID]
    docs: list[int]
    session: UUID
    vector: HalfVector


@pytest.fixture(scope="module")
def loaded(test_run: TestRun) -> Iterator[Loaded]:
    with fresh_database(test_run) as database:
        big, *small = add_tenants(database.admin_url, "big", *(f"small{n}" for n in range(8)))
        load_all(database.admin_url, big, small)
        ids = admin_rows(
            database.admin_url,
            "select id, doc from memory where tenant = %s order by id desc limit 10",
            big,
        )
        [(session,)] = admin_rows(
            database.admin_url, "select id from session where tenant = %s limit 1", big
        )
        vector = HalfVector(np.random.default_rng(1).normal(size=384).astype(np.float32))
        yield Loaded(
            database.admin_url,
            database.service_url,
            big,
            small[0],
            [row[0] for row in ids],
            [row[1] for row in ids],
            session,
            vector,
        )


@pytest.fixture
async def connection(loaded: Loaded) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    async with app_connection(loaded.service_url, loaded.tenant) as made:
        await prepare_connection(made)
        await made.execute("set hnsw.iterative_scan = 'relaxed_order'")
        yield made


def _statements(loaded: Loaded) -> dict[str, tuple[object, ...]]:
    """Hot statements and what they are asked; `name: why` for a second question."""
    ids, active, everything = loaded.ids, ["active"], ["*"]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    page = (None, None, None, active, None, None, 20, None, None)
    return {
        "memory_get": (ids[0], everything),
        "memory_by_short_id": (short_id(ids[0]), ids[0], ids[0], everything, None, False),
        "memories_by_ids": (ids, everything),
        "answer_memories": (ids, everything),
        "memory_list": (everything, *page),
        "memory_list: narrow key": (HERE, *page),
        "memory_list: next page": (everything, ids[5], *page[1:]),
        "memory_list: tag": (everything, None, None, None, active, "tag7", None, 20, None, None),
        "memory_list: scope": (everything, None, "project/p3", *page[2:]),
        "memory_list: kind": (everything, None, None, ["identity"], *page[3:]),
        "memory_list: session": (everything, *page[:5], loaded.session, *page[6:]),
        "memory_list: key": (everything, None, None, None, active, None, None, 20, None, "key7"),
        "session_list": (everything, None, None, None, None, 20),
        "corpus": (everything,),
        "search_words": (QUESTION, everything, active, 100_000.0, 10.0, 50, None, None, 200),
        "search_words: narrow key": (QUESTION, HERE, active, 100_000.0, 10.0, 50, None, None, 200),
        "search_words: common words": (COMMON, HERE, active, 100_000.0, 10.0, 50, None, None, 200),
        "vector_count": (COUNT_LIMIT,),
        "search_vectors_index": (loaded.vector, everything, active, 50, None, None),
        "search_vectors_index: narrow key": (loaded.vector, HERE, active, 50, None, None),
        "search_sparse": (encode_sparse_vector({1: 1.0}), loaded.docs, everything),
        "conflict_candidates": ("project/p1", QUESTION, everything, 8),
        "edges_around": (loaded.docs, everything, 8),
        "candidate_facts": (_KINDS, loaded.docs, everything, active, None, None),
        "index_changes": (QUESTION, "9000000000:9000000000:", 501),
        "index_entries": (ids, _KINDS, _EDGE_KINDS),
        "index_uses": (moment,),
        "edges_among": (ids,),
        "memory_neighbours": (ids[0], everything, 50, None),
        "memory_neighbours: as of a moment": (ids[0], everything, 50, moment),
        "graph_neighbours": (ids, everything, 11, active, None),
        "graph_neighbours: as of a moment": (ids, everything, 11, active, moment),
        "graph_nodes": (ids, everything, None),
        "graph_nodes: as of a moment": (ids, everything, moment),
        "graph_edges": (ids, 100, None),
        "graph_edges: as of a moment": (ids, 100, moment),
        "graph_follows": (ids, everything, active, None),
        "graph_follows: as of a moment": (ids, everything, active, moment),
        "edges_as_of": (ids, moment),
        "turns_list": (loaded.session, -1, 50),
        "dream_turns": (loaded.session, -1, 50),
        "dream_sessions": ("project/p1", UUID(int=0), 900.0, 100),
        "summary_input_memories": ("project/p1", 40),
        "summary_changed_memories": ("project/p1", ids, moment, new_id(), 40),
        "summary_sources": (["project/p1"], None),
        "summary_outdated_lines": (["project/p1", "global"],),
        "dream_similar_memories": ("project/p1", COMMON, 12),
        "stale_list": (everything, None, 20, everything),
        "stale_list: narrow key": (HERE, None, 20, HERE),
        "file_steps": ("p1", ["a.py"], moment),
        "context_memories": (["project/p1", "global"], ["lesson", "decision"], 51, 5, ["command"]),
        "context_file_memories": (["project/p1", "global"], ["a.py"], ["src"], "p1", 80),
        "context_stale_memories": (["project/p1", "global"], 10),
        "context_sessions": (["project/p1", "global"], 1),
        "text_embeddings": ([b"x" * 32],),
    }


async def _explain(
    connection: asyncpg.Connection[asyncpg.Record], name: str, *args: object
) -> dict[str, Any]:
    found = await connection.fetchval(f"explain (format json) {get_query(name).sql}", *args)
    plan: dict[str, Any] = json.loads(found)[0]["Plan"]
    return plan


async def test_no_statement_reads_a_large_table_whole(
    loaded: Loaded, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    for name, args in _statements(loaded).items():
        check(await _explain(connection, name.split(":")[0], loaded.tenant, *args))
    # All vectors of the tenant are read, from narrow tables; the wide one is not.
    args = (loaded.vector, ["*"], ["active"], 50, None, None, 200)
    plan = await _explain(connection, "search_vectors_exact", loaded.tenant, *args)
    check(plan, frozenset({"vec_bge_small_en_v1_5"}))


def test_a_generic_plan_is_good_for_a_large_tenant_among_small_ones(
    loaded: Loaded, nested: psycopg.Connection[Any]
) -> None:
    nested.execute(f"{READER_SETUP}; {build_enter_sql(loaded.tenant)}".encode())
    for name, args in _statements(loaded).items():
        if not re.match("search_|candidate_|conflict_|edges_|memories_by|index_", name):
            continue
        own, few = "vectors_index" in name, not re.match("search_(words|vectors_index)", name)
        asked = name.split(":")[0]
        plan = kept_plan(nested, asked, loaded.tenant, *args, own=own, ran=few)
        check(plan)
        assert "_v_idx" in json.dumps(plan) or not own
        if few:
            read = [n["Actual Rows"] + n.get("Rows Removed by Filter", 0) for n in nodes(plan)]
            times = [node["Actual Loops"] for node in nodes(plan)]
            assert max(map(math.prod, zip(read, times, strict=True))) < 1_000, name


async def test_generic_plans_show_one_tenant_nothing_of_another(loaded: Loaded) -> None:
    """On the one connection that both read through."""
    only, vector = SearchFilter(["*"], ["active"]), np.asarray(loaded.vector.to_numpy(), np.float32)

    async def seen(search: SearchStore, tenant: int) -> list[list[object]]:
        who, docs = principal(tenant, "one of them"), np.array(loaded.docs)
        around = await search.load_edges_around(who, docs, ["*"], 8)
        known = await search.load_facts(who, docs, only)
        near = await search.search_vectors(who, vector, only, 10)
        words = await search.search_words(who, COMMON, only, 10)
        return [
            words.docs.tolist(),
            [column.tolist() for column in around if len(column)],
            list_ids(known.records),
            near.docs.tolist(),
        ]

    async with open_database(loaded.service_url, size=1, reader_size=1) as db:
        search = SearchStore(db)
        first = await seen(search, loaded.tenant)
        assert all(first)
        others = await seen(search, loaded.small)
        assert not any(others[1:3])
        for _ in range(3):
            assert await seen(search, loaded.tenant) == first
            assert await seen(search, loaded.small) == others


async def test_index_search_scores_and_filters_like_exact_search(loaded: Loaded) -> None:
    assert not VectorCounts(VECTORS).prefers_exact_search
    who = principal(loaded.tenant, "big")
    vector = np.asarray(loaded.vector.to_numpy(), dtype=np.float32)
    async with open_database(loaded.service_url, size=2) as db:
        for scopes in (["*"], HERE):
            found = await SearchStore(db).search_vectors(
                who, vector, SearchFilter(scopes, ["active"]), 20
            )
            async with db.tenant_transaction(loaded.tenant) as tenant:
                asked = (loaded.vector, scopes, ["active"], VECTORS, None, None, 2 * VECTORS)
                exact = await tenant.fetch_rows("search_vectors_exact", *asked)
            scores = {row["doc"]: row["score"] for row in exact}
            assert len(set(found.docs.tolist())) == 20
            assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)
            expected = [scores[doc] for doc in found.docs.tolist()]
            assert found.scores.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.fixture
def nested(loaded: Loaded) -> Iterator[psycopg.Connection[Any]]:
    """A session as the services have it that reports the plans inside functions."""
    with psycopg.connect(loaded.admin_url, options=PATH) as made:
        made.execute("load 'auto_explain'")
        for name, value in {
            "auto_explain.log_min_duration": "0",
            "auto_explain.log_nested_statements": "on",
            "auto_explain.log_format": "json",
            "plan_cache_mode": "force_custom_plan",
            "client_min_messages": "log",
            "role": "reverie_app",
        }.items():
            made.execute("select set_config(%s, %s, false)", [name, value])
        yield made
        made.rollback()


def _plans(connection: psycopg.Connection[Any], sql: str, *args: object) -> list[dict[str, Any]]:
    """Every plan that a statement ran, also within functions."""
    said: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        said.append(diagnostic.message_primary or "")

    connection.add_notice_handler(note)
    connection.execute(sql.encode(), args)
    connection.remove_notice_handler(note)
    texts = [text.partition("plan:\n")[2] for text in said if "plan:\n" in text]
    return [json.loads(text)["Plan"] for text in texts]


def test_a_write_looks_up_its_key_and_content_by_an_index(
    loaded: Loaded, nested: psycopg.Connection[Any]
) -> None:
    found = (
        "select scope, key, encode(hash, 'hex') from memory where tenant = %s"
        " and (key is null) = %s limit 1"
    )
    [[scope, key, _]] = admin_rows(loaded.admin_url, found, loaded.tenant, False)
    [[other, _, hashed]] = admin_rows(loaded.admin_url, found, loaded.tenant, True)
    edges = (NewEdge(loaded.ids[0], EdgeKind.LED_TO), NewEdge(loaded.ids[1], EdgeKind.RELATES_TO))
    fields: dict[str, dict[str, Any]] = {
        "fresh": {"tags": ("a", "b")},
        "duplicate": {"scope": other, "content_hash": hashed},
        "conflict": {"scope": scope, "key": key},
        "supersede": {"scope": scope, "key": key, "supersede_reason": "newer"},
        "linked": {"edges": edges},
    }
    for case, more in fields.items():
        item = row_mapping.encode_memory(new(f"something {case}", **more), ["*"])
        plans = _plans(
            nested,
            "select * from remember(%s, 'big', %s, '{}', null, null, null)",
            loaded.tenant,
            json.dumps([item]),
        )
        reading = [plan for plan in plans if relations(plan)]
        assert reading, case
        for plan in reading:
            check(plan)


def test_a_relay_claims_from_a_long_outbox_by_its_index(
    loaded: Loaded, nested: psycopg.Connection[Any]
) -> None:
    plans = _plans(nested, "select id from outbox_claim(100, interval '1 minute')")
    reading = [plan for plan in plans if relations(plan)]
    assert reading
    for plan in reading:
        check(plan)


def test_the_scheduler_finds_work_by_an_index(
    loaded: Loaded, nested: psycopg.Connection[Any]
) -> None:
    [(part,)] = admin_rows(
        loaded.admin_url,
        "select relname from memory m join pg_class c on c.oid = m.tableoid"
        " where tenant = %s limit 1",
        loaded.tenant,
    )
    for name in ("enrichment_overdue", "work_backlog", "changes_unprocessed", "forgotten_due"):
        args = "" if name == "work_backlog" else "interval '0', 100"
        plans = _plans(nested, f"select * from {name}({args})")
        assert any(map(relations, plans)), name
        for plan in plans:
            scans = [(node.get("Relation Name"), node["Node Type"]) for node in nodes(plan)]
            assert (part, "Seq Scan") not in scans, name

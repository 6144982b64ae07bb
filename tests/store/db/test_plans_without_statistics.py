"""Query plans on a database without table statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector

from reverie.domain.retrieval.ranking_facts import KINDS
from reverie.store.db.connections import READER_SETUP, build_enter_sql
from reverie.testing.servers import DatabaseUrls
from tests.store.db.query_plans import kept_plan, nodes
from tests.support.store_setup import PATH, add_tenants

_FILL = """
do $$
declare t text;
begin
  for t in select c.oid::regclass from pg_class c
           where c.relnamespace = 'reverie'::regnamespace
             and c.relname ~ '^(memory|edge)_[0-9]+$' loop
    execute format('alter table %s set (autovacuum_enabled = off)', t);
  end loop;
end $$;
insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms, confidence, source,
                    session)
select TENANT, uuidv7(), 'global', 'decision', 'warm', n || repeat(' words', 20),
       sha256(n::text::bytea), '', 0, 0.8, 'test', lpad(to_hex(n / 20), 32, '0')::uuid
from generate_series(1, 3000) n;
insert into edge (tenant, id, src, kind, dst)
select a.tenant, gen_random_uuid(), a.id, 'relates_to', b.id
from memory a cross join (values (7), (31), (97)) s (step)
join memory b on b.tenant = a.tenant and b.doc = a.doc - s.step where a.tenant = TENANT;
"""
_FILL_VECTORS = """
insert into chunk (tenant, memory, ordinal, start, stop, hash)
select m.tenant, m.id, 0, 0, 1, m.hash from memory m where m.tenant = TENANT order by m.id;
insert into vec_bge_small_en_v1_5 (tenant, chunk, v)
select c.tenant, c.no, array_fill(c.no::real, '{384}')::vector(384)::halfvec(384)
from chunk c where c.tenant = TENANT;
"""
BY_NUMBER: dict[str, tuple[object, ...]] = {
    "edges_around": (["*"], 8),
    "candidate_facts": (["*"], ["active"], None, None),
}
BY_ID: dict[str, tuple[object, ...]] = {
    "memories_by_ids": (["*"],),
    "answer_memories": (["*"],),
    "edges_among": (),
}
FIRST = {"candidate_facts": [[kind.value for kind in KINDS]]}
"""What statements are asked with before the memories."""


def plan_all(
    connection: psycopg.Connection[Any], tenant: int, ids: list[UUID], docs: list[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plan of each statement, for memories by id or by number."""
    asked = [(name, ids, args) for name, args in BY_ID.items()]
    asked += [(name, docs, args) for name, args in BY_NUMBER.items()]  # type: ignore[misc]
    for name, memories, args in asked:
        first = FIRST.get(name, [])
        yield name, kept_plan(connection, name, tenant, *first, memories, *args, ran=True)


@pytest.fixture
def filled(database: DatabaseUrls) -> Iterator[tuple[psycopg.Connection[Any], int, list[UUID]]]:
    [tenant] = add_tenants(database.admin_url, "full")
    with psycopg.connect(database.admin_url, options=PATH) as made:
        made.execute(f"set reverie.tenant = '{tenant}'".encode())
        made.execute(_FILL.replace("TENANT", str(tenant)).encode())
        ids = [row[0] for row in made.execute("select id from memory order by id limit 120")]
        made.execute(f"set role reverie_app; {READER_SETUP}; {build_enter_sql(tenant)}".encode())
        yield made, tenant, ids


def test_without_statistics_no_lookup_reads_the_whole_tenant(
    filled: tuple[psycopg.Connection[Any], int, list[UUID]],
) -> None:
    connection, tenant, ids = filled
    numbered = connection.execute("select doc from memory where id = any(%s)", [ids])
    docs = [row[0] for row in numbered]
    for name, plan in plan_all(connection, tenant, ids, docs):
        for node in nodes(plan):
            if re.match(r"(edge|memory)_\d+$", node.get("Relation Name", "")):
                read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                assert read * node["Actual Loops"] < 3000, (name, json.dumps(node))


def test_without_statistics_what_may_be_repeated_is_read_by_its_id(
    filled: tuple[psycopg.Connection[Any], int, list[UUID]],
) -> None:
    connection, tenant, ids = filled
    connection.execute(f"reset role; {_FILL_VECTORS.replace('TENANT', str(tenant))}".encode())
    connection.execute("set role reverie_app; set enable_seqscan = on")
    subjects, vector = ids[-8:], HalfVector(np.ones(384))
    args = (subjects, [vector.to_text()] * len(subjects), ["global"] * len(subjects), 8, 0)
    plan = kept_plan(connection, "duplicate_candidates", tenant, *args, ran=True, own=True)
    reads = [
        node for node in nodes(plan) if re.match(r"memory_\d+$", node.get("Relation Name", ""))
    ]
    assert sum(node["Actual Loops"] for node in reads) > 2 * len(subjects)
    for node in reads:
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        assert read * node["Actual Loops"] < 3000, json.dumps(node)

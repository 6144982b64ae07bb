"""A database that was just filled has no statistics: a look-up is one all the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from reverie.store.pools import entering
from reverie.store.queries import query, settled
from reverie.testing.servers import Database
from tests.integration.store_parts import PATH, add_tenants

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
ASKED: dict[str, tuple[object, ...]] = {
    "edges_around": (["*"], 8),
    "recall_facts": (["*"], ["active"], None, None, None, None),
    "memories_by_ids": (["*"],),
    "edges_among": (),
}


@pytest.fixture
def filled(database: Database) -> Iterator[tuple[psycopg.Connection[Any], int, list[UUID]]]:
    [tenant] = add_tenants(database.admin_url, "full")
    with psycopg.connect(database.admin_url, options=PATH) as made:
        made.execute(f"set reverie.tenant = '{tenant}'".encode())
        made.execute(_FILL.replace("TENANT", str(tenant)).encode())
        ids = [row[0] for row in made.execute("select id from memory order by id limit 120")]
        made.execute("set role reverie_app; set plan_cache_mode = force_custom_plan")
        yield made, tenant, ids


def test_without_statistics_no_look_up_reads_the_whole_tenant(
    filled: tuple[psycopg.Connection[Any], int, list[UUID]],
) -> None:
    connection, tenant, ids = filled
    for name, args in ASKED.items():
        sql, given = settled(query(name).sql, (tenant, ids, *args))
        connection.execute(f"prepare {name} as {sql}".encode())
        texts = ", ".join(_literal(one) for one in given)
        ran = f"explain (analyze, buffers, format json) execute {name} ({texts})"
        found = connection.execute(ran.encode()).fetchone()
        assert found is not None
        for node in _nodes(found[0][0]["Plan"]):
            if re.match(r"(edge|memory)_\d+$", node.get("Relation Name", "")):
                read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                assert read * node["Actual Loops"] < 3000, (name, json.dumps(node))


def test_a_plan_kept_since_the_store_was_empty_reads_by_ids_too(database: Database) -> None:
    [tenant] = add_tenants(database.admin_url, "empty")
    with psycopg.connect(database.admin_url, options=PATH) as connection:
        connection.execute(f"set role reverie_app; {entering(tenant, steady=True)}".encode())
        for name, args in ASKED.items():
            sql, _ = settled(query(name).sql, (tenant, [], *args))
            ran = f"explain (generic_plan, format json) {sql}"
            found = connection.execute(ran.encode()).fetchone()
            assert found is not None
            kinds = {node["Node Type"] for node in _nodes(found[0][0]["Plan"])}
            assert "Seq Scan" not in kinds, name


def _literal(value: object) -> str:
    if value is None:
        return "null"
    assert isinstance(value, list)
    return "'{" + ",".join(map(str, value)) + "}'"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)

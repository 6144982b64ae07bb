"""Ranks follow the edges and bring what is leaned on into the briefing; walks use the indexes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from graphlib import TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.domain.edges import CAUSAL, EdgeKind
from reverie.domain.errors import Conflict
from reverie.domain.kinds import Kind
from reverie.domain.memory import Written
from reverie.domain.pagerank import ranked
from reverie.store.briefing import LEANED_ON, Briefings
from reverie.store.database import open_database
from reverie.store.edits import Change, Edits
from reverie.store.graph import Around, Behind, Graph
from reverie.store.links import Link, Links
from reverie.store.memories import Memories
from reverie.store.queries import query
from reverie.store.ranks import Ranks
from reverie.testing.servers import Database, TestRun, fresh_database
from tests.integration.store_parts import (
    PATH,
    Store,
    add_tenants,
    admin_rows,
    app_connection,
    new,
    open_store,
    principal,
    write,
)
from tests.reference import networkx_ranks

FEW = 8


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with open_store(database) as made:
        yield made


async def _ranked(store: Store) -> dict[UUID, float]:
    ranks = Ranks(store.db)
    for tenant in await ranks.due(10):
        standing = await ranks.standing(tenant)
        await ranks.put(tenant, ranked(standing.edges), standing.changes)
    found = admin_rows(
        store.admin_url,
        "select memory, rank::float8 from memory_rank where tenant = %s",
        store.me.tenant,
    )
    return dict(found)


async def test_ranks_are_stored_as_networkx_has_them_and_follow_each_change(store: Store) -> None:
    ids = await write(store, *(new(f"bug {n}", kind=Kind.BUG) for n in range(12)))
    links, ranks = Links(store.db), Ranks(store.db)
    made = [
        (await links.put(store.me, Link(one, ids[0], EdgeKind.CAUSED_BY), {}))[0] for one in ids[1:]
    ]
    await links.put(store.me, Link(ids[3], ids[4], EdgeKind.DEPENDS_ON, 0.5), {})
    assert await ranks.due(10) == [store.me.tenant]
    cast = [(one, ids[0], 1.0) for one in ids[1:]] + [(ids[3], ids[4], 0.5)]
    stored, theirs = await _ranked(store), networkx_ranks(cast)
    assert stored == pytest.approx(theirs, abs=1e-6)
    assert await ranks.due(10) == []
    shown = (await Briefings(store.db).read(store.me, ["global"])).memories
    assert len(shown) == LEANED_ON
    assert ids[0] in [memory.id for memory in shown]
    await links.close(store.me, made[-1], {})
    assert await ranks.due(10) == [store.me.tenant]
    assert ids[-1] not in await _ranked(store)


async def test_what_is_archived_restored_or_forgotten_is_ranked_no_more_or_again(
    store: Store,
) -> None:
    a, b, lone = await write(store, new("one"), new("two"), new("three"))
    await Links(store.db).put(store.me, Link(a, b, EdgeKind.DEPENDS_ON), {})
    assert set(await _ranked(store)) == {a, b}
    for status, left in (("archived", set()), ("active", {a, b}), ("superseded", {a, b})):
        sql = "update memory set status = %s where id = any(%s)"
        admin_rows(store.admin_url, sql, status, [b, lone])
        due = [] if status == "superseded" else [store.me.tenant]
        assert await Ranks(store.db).due(10) == due
        assert set(await _ranked(store)) == left
    change = Change({"status": "deleted"}, "forgotten", "forgotten", 1)
    await Edits(store.db).change(store.me, a, change, {})
    assert await _ranked(store) == {}


async def test_links_are_told_in_the_outbox_with_their_ends(store: Store) -> None:
    a, b = await write(store, new("one"), new("two"))
    links = Links(store.db)
    edge, event = await links.put(store.me, Link(a, b, EdgeKind.LED_TO), {})
    closed = await links.close(store.me, edge, {})
    rows = admin_rows(
        store.admin_url,
        "select id, subject, payload from outbox where subject like 'memory.one.%%linked'"
        " order by subject",
    )
    told = {"v": 1, "version": 1, "tenant": store.me.tenant, "id": str(edge)}
    ends = {"from": str(a), "to": str(b), "type": "led_to"}
    assert event is not None
    assert rows == [
        (event.id, "memory.one.linked", told | ends),
        (closed.id, "memory.one.unlinked", told | ends),
    ]
    assert all(json.loads(one.payload) == told | ends for one in (event, closed))


places = st.integers(0, FEW - 1)
storms = st.lists(
    st.tuples(places, st.sampled_from(sorted(CAUSAL)), places).filter(lambda t: t[0] != t[2]),
    min_size=8,
    max_size=20,
)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(picks=storms)
def test_random_links_at_once_never_close_a_causal_cycle(
    database: Database, picks: list[tuple[int, EdgeKind, int]]
) -> None:
    [tenant] = add_tenants(database.admin_url, f"t{uuid4().hex[:12]}")
    asyncio.run(_storm(database, tenant, picks))
    order: TopologicalSorter[UUID] = TopologicalSorter()
    sql = "select src, kind, dst from edge where tenant = %s and known_to is null"
    for src, kind, dst in admin_rows(database.admin_url, sql, tenant):
        order.add(*((dst, src) if kind == "led_to" else (src, dst)))
    order.prepare()


async def _storm(database: Database, tenant: int, picks: list[tuple[int, EdgeKind, int]]) -> None:
    """Tells all the links at once; those that would close a ring are refused."""
    who = principal(tenant, "any")
    async with open_database(database.service_url, size=8) as db:
        told = await Memories(db).remember(who, [new(f"node {n}") for n in range(FEW)], {})
        ids = [one.id for one in told if isinstance(one, Written)]
        links = [Link(ids[a], ids[b], kind) for a, kind, b in picks]
        found = await asyncio.gather(
            *(Links(db).put(who, link, {}) for link in links), return_exceptions=True
        )
    assert {type(one) for one in found if isinstance(one, BaseException)} <= {Conflict}


@pytest.fixture(scope="module")
def crowded(test_run: TestRun) -> Iterator[tuple[Database, int]]:
    """10,000 memories, 50,000 open edges and 5,000 closed ones; and 50,000 to one memory."""
    with fresh_database(test_run) as database:
        [tenant] = add_tenants(database.admin_url, "one")
        with psycopg.connect(database.admin_url, options=PATH, autocommit=True) as connection:
            connection.execute(
                "insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms,"
                " confidence, source, session) select %s, md5(n::text)::uuid, 'global', 'bug',"
                " 'warm', n::text, sha256(n::text::bytea), '', 1, 1, 'test',"
                " md5('s' || n / 10)::uuid from generate_series(1, 10000) n",
                [tenant],
            )
            connection.execute(
                "insert into edge (tenant, id, src, kind, dst, known_to) select %s,"
                " gen_random_uuid(), md5((1 + n %% 10000)::text)::uuid, 'relates_to',"
                " md5((1 + (n * 7 + n / 10000 + 1) %% 10000)::text)::uuid,"
                " case when n > 50000 then now() end from generate_series(1, 55000) n"
                " where 1 + n %% 10000 <> 1 + (n * 7 + n / 10000 + 1) %% 10000"
                " on conflict do nothing",
                [tenant],
            )
            # The hub is a file that all touch, and that all hang together with in four more ways.
            connection.execute(
                "update memory set kind = 'file', content = 'src/hub.py' where id = md5('1')::uuid"
            )
            connection.execute(
                "insert into anchor (tenant, node, project, path, name)"
                " values (%s, md5('1')::uuid, 'p', 'src/hub.py', 'hub.py')",
                [tenant],
            )
            connection.execute(
                "insert into edge (tenant, id, src, kind, dst) select %s, gen_random_uuid(),"
                " md5(n::text)::uuid, kind, md5('1')::uuid from generate_series(2, 10000) n,"
                " unnest('{touches,relates_to,depends_on,part_of,contradicts}'::text[]) kind"
                " on conflict do nothing",
                [tenant],
            )
            connection.execute("vacuum analyze")
        yield database, tenant


def _scans(plan: dict[str, Any]) -> list[tuple[str, str]]:
    here = [(str(plan["Relation Name"]), str(plan["Node Type"]))] if "Relation Name" in plan else []
    return here + [scan for child in plan.get("Plans", []) for scan in _scans(child)]


@pytest.mark.parametrize("then", [False, True])
async def test_a_walk_over_fifty_thousand_edges_reads_them_by_their_indexes(
    crowded: tuple[Database, int], then: bool
) -> None:
    database, tenant = crowded
    ids = admin_rows(database.admin_url, "select id from memory order by id limit 20")
    nodes = [row[0] for row in ids]
    async with app_connection(database.service_url, tenant) as connection:
        [(moment,)] = admin_rows(database.admin_url, "select now()")
        for name, args in {
            "graph_steps": (nodes, ["*"], 11, ["active"]),
            "graph_edges": (nodes, 100),
            "graph_nodes": (nodes, ["*"]),
            "graph_follows": (nodes, ["*"], ["active"]),
        }.items():
            full = f"{name}_then" if then else name
            asked = (tenant, *args, *([moment] if then else []))
            text = await connection.fetchval(f"explain (format json) {query(full).sql}", *asked)
            scans = _scans(json.loads(text)[0]["Plan"])
            big = [one for one in scans if one[0].startswith(("edge_", "memory_"))]
            assert big, full
            assert "Seq Scan" not in {
                kind for table, kind in big if not table.startswith("memory_version")
            }, (full, scans)


async def test_a_deep_walk_over_fifty_thousand_edges_stays_within_its_bounds(
    crowded: tuple[Database, int],
) -> None:
    database, tenant = crowded
    [(root,)] = admin_rows(database.admin_url, "select id from memory order by id limit 1")
    who = principal(tenant, "one")
    async with open_database(database.service_url, size=2) as db:
        ask = Around(5, 10, 300, ["active"])
        picture = await Graph(db).around(who, root, ask)
        assert (len(picture.depths), picture.cut_by & {"nodes"}) == (300, {"nodes"})
        late = await Graph(db).around(who, root, Around(5, 50, 500, ["active"], seconds=0.001))
        assert "time" in late.cut_by


async def test_a_hub_of_fifty_thousand_edges_gives_as_much_as_is_asked_for(
    crowded: tuple[Database, int],
) -> None:
    database, tenant = crowded
    hub = UUID("c4ca4238-a0b9-2382-0dcc-509a6f75849b")
    who = principal(tenant, "one")
    async with open_database(database.service_url, size=2) as db:
        picture = await Graph(db).around(who, hub, Around(1, 10, 100, ["active"]))
        assert (len(picture.depths), picture.cut_by) == (11, {"fan_out"})
        found = await Graph(db).behind(who, "src/hub.py", "p", 50)
        assert (found.names, len(found.rows), found.truncated) == (["src/hub.py"], 50, True)
        assert len(found.affected) == 51
        assert await Graph(db).behind(who, "src/hub.py", "other", 50) == Behind([], {}, [], False)

"""Stored graph ranks follow changes of edges, and large walks stay bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from reverie.domain.core.kinds import EdgeKind, Kind
from reverie.domain.graph.pagerank import rank_scopes
from reverie.store.db.database import open_database
from reverie.store.graph.graph import GraphStore, ImpactRecords, SubgraphRequest
from reverie.store.graph.links import LinkRequest, LinkStore
from reverie.store.memories.edits import EditStore, MemoryChange
from reverie.store.search.ranking_signals import RankStore
from reverie.store.sessions.context import CENTRAL_MEMORY_LIMIT, ContextStore
from reverie.testing.servers import DatabaseUrls, TestRun, fresh_database
from tests.support.networkx_reference import networkx_ranks
from tests.support.store_setup import PATH, Store, add_tenants, admin_rows, new, principal, write


async def _ranked(store: Store) -> dict[UUID, float]:
    ranks = RankStore(store.db)
    for tenant in await ranks.list_due_tenants(10):
        standing = await ranks.load_edges(tenant)
        await ranks.put(tenant, rank_scopes(standing.scopes), standing.changes)
    found = admin_rows(
        store.admin_url,
        "select memory, rank::float8 from memory_rank where tenant = %s",
        store.me.tenant,
    )
    return dict(found)


async def test_ranks_equal_those_of_networkx_and_follow_each_change(store: Store) -> None:
    ids = await write(store, *(new(f"bug {n}", kind=Kind.BUG) for n in range(12)))
    links, ranks = LinkStore(store.db), RankStore(store.db)
    made = [
        (await links.put(store.me, LinkRequest(one, ids[0], EdgeKind.CAUSED_BY), {})).id
        for one in ids[1:]
    ]
    await links.put(store.me, LinkRequest(ids[3], ids[4], EdgeKind.DEPENDS_ON, 0.5), {})
    assert await ranks.list_due_tenants(10) == [store.me.tenant]
    cast = [(one, ids[0], 1.0) for one in ids[1:]] + [(ids[3], ids[4], 0.5)]
    stored, theirs = await _ranked(store), networkx_ranks(cast)
    best = max(theirs.values())
    assert stored == pytest.approx({one: rank / best for one, rank in theirs.items()}, abs=1e-5)
    assert await ranks.list_due_tenants(10) == []
    shown = (await ContextStore(store.db).load(store.me, ["global"])).memories
    assert len(shown) == CENTRAL_MEMORY_LIMIT
    assert ids[0] in [memory.id for memory in shown]
    await links.close(store.me, made[-1], {})
    assert await ranks.list_due_tenants(10) == [store.me.tenant]
    assert ids[-1] not in await _ranked(store)


async def test_archived_and_forgotten_memories_lose_their_rank_and_restored_ones_regain_it(
    store: Store,
) -> None:
    a, b, lone = await write(store, new("one"), new("two"), new("three"))
    await LinkStore(store.db).put(store.me, LinkRequest(a, b, EdgeKind.DEPENDS_ON), {})
    assert set(await _ranked(store)) == {a, b}
    for status, left in (("archived", set()), ("active", {a, b}), ("superseded", {a, b})):
        sql = "update memory set status = %s where id = any(%s)"
        admin_rows(store.admin_url, sql, status, [b, lone])
        due = [] if status == "superseded" else [store.me.tenant]
        assert await RankStore(store.db).list_due_tenants(10) == due
        assert set(await _ranked(store)) == left
    change = MemoryChange({"status": "deleted"}, "forgotten", "forgotten", 1)
    await EditStore(store.db).change(store.me, a, change, {})
    assert await _ranked(store) == {}


async def test_ranks_tell_nothing_of_other_scopes_and_follow_a_memory_that_moves(
    store: Store,
) -> None:
    a, b, hidden = await write(store, new("one"), new("two"), new("three", scope="project/h"))
    links = LinkStore(store.db)
    await links.put(store.me, LinkRequest(a, b, EdgeKind.DEPENDS_ON), {})
    alone = await _ranked(store)
    assert alone[b] == 1
    others = await write(store, *(new(f"other {n}", scope="project/h") for n in range(9)))
    for other in others:
        for end in (hidden, a):
            await links.put(store.me, LinkRequest(other, end, EdgeKind.DEPENDS_ON), {})
    ranked = await _ranked(store)
    assert {memory: ranked[memory] for memory in (a, b)} == alone
    assert ranked[hidden] == 1
    admin_rows(store.admin_url, "update memory set scope = 'project/h' where id = %s", a)
    assert await RankStore(store.db).list_due_tenants(10) == [store.me.tenant]
    moved = await _ranked(store)
    assert b not in moved
    assert 0.9 < moved[a] <= 1


async def test_links_are_published_in_the_outbox_with_their_ends(store: Store) -> None:
    a, b = await write(store, new("one"), new("two"))
    links = LinkStore(store.db)
    linked = await links.put(store.me, LinkRequest(a, b, EdgeKind.LED_TO), {})
    edge, event = linked.id, linked.event
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


@pytest.fixture(scope="module")
def crowded(test_run: TestRun) -> Iterator[tuple[DatabaseUrls, int]]:
    """2,000 memories, 10,000 open edges and 1,000 closed ones; and 10,000 to one memory."""
    with fresh_database(test_run) as database:
        [tenant] = add_tenants(database.admin_url, "one")
        with psycopg.connect(database.admin_url, options=PATH, autocommit=True) as connection:
            connection.execute(
                "insert into memory (tenant, id, scope, kind, tier, content, hash, words, terms,"
                " confidence, source, session) select %s, md5(n::text)::uuid, 'global', 'bug',"
                " 'warm', n::text, sha256(n::text::bytea), '', 1, 1, 'test',"
                " md5('s' || n / 10)::uuid from generate_series(1, 2000) n",
                [tenant],
            )
            connection.execute(
                "insert into edge (tenant, id, src, kind, dst, known_to) select %s,"
                " gen_random_uuid(), md5((1 + n %% 2000)::text)::uuid, 'relates_to',"
                " md5((1 + (n * 7 + n / 2000 + 1) %% 2000)::text)::uuid,"
                " case when n > 10000 then now() end from generate_series(1, 11000) n"
                " where 1 + n %% 2000 <> 1 + (n * 7 + n / 2000 + 1) %% 2000"
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
                " md5(n::text)::uuid, kind, md5('1')::uuid from generate_series(2, 2000) n,"
                " unnest('{touches,relates_to,depends_on,part_of,contradicts}'::text[]) kind"
                " on conflict do nothing",
                [tenant],
            )
            connection.execute("vacuum analyze")
        yield database, tenant


async def test_a_deep_walk_over_ten_thousand_edges_stays_within_its_bounds(
    crowded: tuple[DatabaseUrls, int],
) -> None:
    database, tenant = crowded
    [(root,)] = admin_rows(database.admin_url, "select id from memory order by id limit 1")
    who = principal(tenant, "one")
    async with open_database(database.service_url, size=2) as db:
        ask = SubgraphRequest(5, 10, 300, ["active"])
        picture = await GraphStore(db).load_subgraph(who, root, ask)
        assert (len(picture.depths), picture.truncated_by & {"nodes"}) == (300, {"nodes"})
        late = await GraphStore(db).load_subgraph(
            who, root, SubgraphRequest(5, 50, 500, ["active"], seconds=0.001)
        )
        assert "time" in late.truncated_by


async def test_a_hub_of_ten_thousand_edges_returns_as_many_as_requested(
    crowded: tuple[DatabaseUrls, int],
) -> None:
    database, tenant = crowded
    hub = UUID("c4ca4238-a0b9-2382-0dcc-509a6f75849b")
    who = principal(tenant, "one")
    async with open_database(database.service_url, size=2) as db:
        picture = await GraphStore(db).load_subgraph(
            who, hub, SubgraphRequest(1, 10, 100, ["active"])
        )
        assert (len(picture.depths), picture.truncated_by) == (11, {"fan_out"})
        found = await GraphStore(db).find_file_impact(who, "src/hub.py", "p", 50)
        assert (found.names, len(found.rows), found.truncated) == (["src/hub.py"], 50, True)
        assert len(found.affected) == 51
        assert await GraphStore(db).find_file_impact(
            who, "src/hub.py", "other", 50
        ) == ImpactRecords([], {}, [], False)

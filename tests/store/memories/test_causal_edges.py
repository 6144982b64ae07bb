"""Causal edges stay free of cycles under concurrent writers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.domain.core.errors import InvalidInput
from reverie.domain.core.kinds import STORED_EDGE_KINDS, EdgeKind
from reverie.domain.core.memory import NewEdge
from reverie.store.db.connections import SERVER_SETTINGS, prepare_connection
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, add_tenants, admin_rows, new, write

CAUSAL_EDGE_KINDS = frozenset(
    map(EdgeKind, ("caused_by", "led_to", "supersedes", "learned_in", "part_of"))
)
LINK = "select link($1, $2, $3, $4, $5, 1, '{}')"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


@pytest.fixture
def store(shared_store: Store) -> Store:
    return shared_store


@pytest.fixture
async def pool(store: Store) -> AsyncIterator[Pool]:
    async with asyncpg.create_pool(
        store.service_url,
        min_size=8,
        max_size=8,
        init=prepare_connection,
        server_settings=SERVER_SETTINGS,
    ) as made:
        yield made


async def _link(pool: Pool, tenant: int, src: UUID, kind: str, dst: UUID) -> dict[str, object]:
    answer: dict[str, object] = await pool.fetchval(LINK, tenant, uuid4(), src, kind, dst)
    return answer


def _query_both(store: Store, statement: str) -> list[tuple[Any, ...]]:
    """What a statement answers of the rows of both tenants."""
    both = (store.me.tenant, store.other.tenant)
    return admin_rows(store.admin_url, f"{statement} where tenant in (%s, %s)", *both)


def _facts(admin_url: str, tenant: int) -> list[tuple[UUID, UUID]]:
    """Open causal edges as (cause, effect)."""
    rows = admin_rows(
        admin_url,
        "select case kind when 'led_to' then src else dst end,"
        " case kind when 'led_to' then dst else src end from edge"
        " where tenant = %s and known_to is null and kind = any(%s)",
        tenant,
        [kind.value for kind in CAUSAL_EDGE_KINDS],
    )
    return [(cause, effect) for cause, effect in rows]


def _ordered(facts: Iterable[tuple[UUID, UUID]]) -> list[UUID]:
    """The nodes, causes first; raises where they go round."""
    sorter: TopologicalSorter[UUID] = TopologicalSorter()
    for cause, effect in facts:
        sorter.add(effect, cause)
    return list(sorter.static_order())


async def test_a_link_stated_from_both_ends_is_one_edge(store: Store, pool: Pool) -> None:
    cause, effect = uuid4(), uuid4()
    first = await _link(pool, store.me.tenant, cause, "led_to", effect)
    again = await _link(pool, store.me.tenant, effect, "caused_by", cause)
    assert (again["id"], again["change"]) == (first["id"], "none")
    rows = _query_both(store, "select src, kind, dst from edge")
    assert rows == [(cause, "led_to", effect)]


async def test_a_memory_cannot_be_linked_to_itself(store: Store, pool: Pool) -> None:
    one = uuid4()
    for kind in STORED_EDGE_KINDS:
        answer = await _link(pool, store.me.tenant, one, kind.value, one)
        assert answer == {"problem": "self"}, kind
    assert _query_both(store, "select count(*) from edge") == [(0,)]


async def test_concurrent_opposite_links_are_never_both_stored(store: Store, pool: Pool) -> None:
    pairs = [(uuid4(), uuid4()) for _ in range(20)]
    tries = [
        _link(pool, store.me.tenant, a, "led_to", b)
        for pair in pairs
        for a, b in (pair, pair[::-1])
    ]
    answers = await asyncio.gather(*tries)
    for forth, back in zip(answers[::2], answers[1::2], strict=True):
        assert ("problem" in forth) != ("problem" in back)
    assert len(_facts(store.admin_url, store.me.tenant)) == 20


async def test_concurrent_circles_of_every_causal_kind_stay_open(store: Store, pool: Pool) -> None:
    chance = random.Random(7)
    rings = [[uuid4() for _ in range(5)] for _ in range(12)]
    tries = []
    for ring in rings:
        for cause, effect in zip(ring, [*ring[1:], ring[0]], strict=True):
            kind = chance.choice(sorted(CAUSAL_EDGE_KINDS))
            ends = (cause, effect) if kind is EdgeKind.LED_TO else (effect, cause)
            tries.append((ends[0], kind.value, ends[1]))
    chance.shuffle(tries)
    answers = await asyncio.gather(*(_link(pool, store.me.tenant, *one) for one in tries))
    assert sum("problem" in answer for answer in answers) == len(rings)
    _ordered(_facts(store.admin_url, store.me.tenant))


async def test_many_concurrent_links_over_few_memories_stay_acyclic(
    store: Store, pool: Pool
) -> None:
    chance = random.Random(3)
    nodes = [uuid4() for _ in range(12)]
    tries = [
        (chance.choice(nodes), chance.choice(sorted(CAUSAL_EDGE_KINDS)).value, chance.choice(nodes))
        for _ in range(150)
    ]
    answers = await asyncio.gather(*(_link(pool, store.me.tenant, *one) for one in tries))
    assert any("problem" in answer for answer in answers)
    facts = _facts(store.admin_url, store.me.tenant)
    assert len(facts) > 10
    assert set(_ordered(facts)) <= set(nodes)


async def test_a_refusal_names_the_path(store: Store, pool: Pool) -> None:
    a, b, c = uuid4(), uuid4(), uuid4()
    await _link(pool, store.me.tenant, a, "led_to", b)
    await _link(pool, store.me.tenant, c, "caused_by", b)
    answer = await _link(pool, store.me.tenant, c, "led_to", a)
    assert answer == {"problem": "cycle", "path": [str(a), str(b), str(c), str(a)]}


async def test_relations_may_form_circles(store: Store, pool: Pool) -> None:
    a, b = uuid4(), uuid4()
    for kind in set(STORED_EDGE_KINDS) - CAUSAL_EDGE_KINDS:
        for ends in ((a, b), (b, a)):
            assert "id" in await _link(pool, store.me.tenant, ends[0], kind.value, ends[1])


async def test_a_closed_edge_no_longer_forbids_its_opposite(store: Store, pool: Pool) -> None:
    a, b = uuid4(), uuid4()
    await _link(pool, store.me.tenant, a, "led_to", b)
    _query_both(store, "update edge set known_to = now()")
    assert "id" in await _link(pool, store.me.tenant, b, "led_to", a)


async def test_the_circle_check_of_one_tenant_ignores_edges_of_another(
    store: Store, pool: Pool
) -> None:
    a, b = uuid4(), uuid4()
    assert "id" in await _link(pool, store.me.tenant, a, "led_to", b)
    assert "id" in await _link(pool, store.other.tenant, b, "led_to", a)


async def test_the_circle_check_stays_cheap_with_a_million_paths(store: Store, pool: Pool) -> None:
    """24 diamonds in a row: 16 million ways, 72 nodes."""
    tops = [uuid4() for _ in range(25)]
    for top, bottom in pairwise(tops):
        for middle in (uuid4(), uuid4()):
            await _link(pool, store.me.tenant, top, "led_to", middle)
            await _link(pool, store.me.tenant, middle, "led_to", bottom)
    async with pool.acquire() as connection:
        await connection.execute("set statement_timeout = '5s'")
        args = (store.me.tenant, uuid4(), tops[-1], "led_to", tops[0])
        answer = await connection.fetchval(LINK, *args)
        assert answer["problem"] == "cycle"
        assert len(answer["path"]) == 50
        args = (store.me.tenant, uuid4(), uuid4(), "led_to", tops[0])
        assert "id" in await connection.fetchval(LINK, *args)


async def test_a_write_whose_edges_would_form_a_circle_leaves_nothing(store: Store) -> None:
    [old] = await write(store, new("the cause"))
    edges = (NewEdge(old, EdgeKind.LED_TO), NewEdge(old, EdgeKind.CAUSED_BY))
    [answer, other] = await store.memories.remember(
        store.me, [new("round", edges=edges), new("sound")], {}
    )
    assert isinstance(answer, InvalidInput)
    assert not isinstance(other, Exception)
    rows = _query_both(store, "select content from memory")
    assert sorted(rows) == [("sound",), ("the cause",)]
    assert _query_both(store, "select count(*) from edge") == [(0,)]


steps = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(sorted(CAUSAL_EDGE_KINDS)), st.integers(0, 5)),
    max_size=25,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(told=steps)
def test_links_are_accepted_exactly_while_they_stay_acyclic(
    shared_database: DatabaseUrls, told: list[tuple[int, EdgeKind, int]]
) -> None:
    """Each link is taken exactly if the facts with it can still be ordered."""
    admin_url = shared_database.admin_url
    [tenant] = add_tenants(admin_url, f"t{uuid4().hex[:12]}")
    nodes = [uuid4() for _ in range(6)]
    facts: set[tuple[UUID, UUID]] = set()
    for src, kind, dst in told:
        ends = (nodes[src], nodes[dst])
        fact = ends if kind is EdgeKind.LED_TO else ends[::-1]
        sql = "select link(%s, gen_random_uuid(), %s, %s, %s, 1, '{}') ? 'problem'"
        refused = admin_rows(admin_url, sql, tenant, ends[0], kind.value, ends[1])
        assert refused == [(not _has_order(facts | {fact}),)]
        if not refused[0][0]:
            facts.add(fact)


def _has_order(facts: set[tuple[UUID, UUID]]) -> bool:
    try:
        _ordered(facts)
    except ValueError:
        return False
    return True

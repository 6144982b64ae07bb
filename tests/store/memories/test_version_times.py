"""Versions tile the time of a memory, whatever waited for what."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.domain.core.errors import NotFound
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import WriteOutcome, WriteResult
from reverie.store.graph.links import LinkRequest, LinkStore
from reverie.store.memories.edits import EditStore, MemoryChange
from reverie.testing.servers import DatabaseUrls
from tests.store.memories.memory_access import worded
from tests.support.stack import eventually
from tests.support.store_setup import (
    PATH,
    Store,
    admin_rows,
    app_connection,
    new,
    open_store_apart,
    write,
)
from tests.support.tables import blocked

BROKEN = """
with step as (
  select memory, version, known_from, known_to from memory_version where tenant = %(tenant)s
  union all
  select id, version, known_from, null from memory where tenant = %(tenant)s
), pair as (
  select s.*, lead(known_from) over (partition by memory order by version) as next from step s
)
select memory, version from pair where known_to <= known_from or next is distinct from known_to
"""
MOMENTS = """
select distinct at from (
  select tenant, known_from as at from memory union select tenant, known_from from memory_version
  union select tenant, known_to from memory_version) k where tenant = %(tenant)s
"""
ACTIVE_AT = """
select count(*) filter (where k.status = 'active'), count(distinct k.id) = count(*)
from memory_as_of(%(tenant)s, %(at)s) k where k.key = 'port'
"""
DOUBLE_EDGES = """
select a.id from edge a join edge b using (tenant, src, kind, dst)
where a.tenant = %(tenant)s and a.id < b.id and a.known_from < coalesce(b.known_to, 'infinity')
  and b.known_from < coalesce(a.known_to, 'infinity')
union all
select id from edge where tenant = %(tenant)s and known_to <= known_from
"""
FEW = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def store(shared_store: Store) -> Store:
    return shared_store


def _find(store: Store, query: str, **values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query about the tenant."""
    with psycopg.connect(store.admin_url, options=PATH) as connection:
        named = {"tenant": store.me.tenant, **values}
        return connection.execute(query.encode(), named).fetchall()


def _check_times(store: Store) -> None:
    """Every version ends when the next begins, and one memory is active under the key."""
    assert _find(store, BROKEN) == []
    assert _find(store, DOUBLE_EDGES) == []
    for (at,) in sorted(_find(store, MOMENTS)):
        assert _find(store, ACTIVE_AT, at=at) == [(1, True)], at


async def _replace(store: Store, content: str) -> WriteResult:
    item = new(content, key="port", supersede_reason="newer")
    [written] = await store.memories.remember(store.me, [item], {})
    assert isinstance(written, WriteResult)
    return written


async def test_a_writer_that_waited_for_a_lock_leaves_no_moment_with_two_values_of_a_key(
    store: Store,
) -> None:
    [first] = await write(store, new("port 80", key="port"))
    identity = json.dumps([{"scope": "global", "key": "port"}])
    async with app_connection(store.service_url, store.me.tenant) as other:
        held = other.transaction()
        await held.start()
        await other.execute("select lock_identities($1, $2)", store.me.tenant, identity)
        late = asyncio.create_task(_replace(store, "port 81"))
        await eventually(lambda: blocked(store.admin_url))
        change = MemoryChange({"pinned": True}, "while it waits", "pinned")
        await EditStore(store.db).change(store.me, first, change, {})
        await held.commit()
        assert (await late).outcome is WriteOutcome.SUPERSEDED
    _check_times(store)


async def test_an_edge_that_was_closed_while_another_writer_waited_is_never_open_twice(
    store: Store,
) -> None:
    a, b = await write(store, new("one"), new("two"))
    links = LinkStore(store.db)
    first = await links.put(store.me, LinkRequest(a, b, EdgeKind.LED_TO), {})
    async with app_connection(store.service_url, store.me.tenant) as other:
        held = other.transaction()
        await held.start()
        await other.execute("select lock_acyclic_edges($1, 'led_to')", store.me.tenant)
        raised = LinkRequest(a, b, EdgeKind.LED_TO, 1.0)
        again = asyncio.create_task(links.put(store.me, raised, {}))
        await eventually(lambda: blocked(store.admin_url))
        await links.close(store.me, first.id, {})
        await held.commit()
        assert (await again).created
    assert _find(store, DOUBLE_EDGES) == []


@FEW
@given(seed=st.integers(0, 2**32), steps=st.lists(st.integers(0, 4), min_size=4, max_size=24))
def test_as_of_has_neither_gaps_nor_doubles_however_many_writers_race(
    shared_database: DatabaseUrls, seed: int, steps: Sequence[int]
) -> None:
    asyncio.run(_race(shared_database, seed, steps))


async def _race(database: DatabaseUrls, seed: int, steps: Sequence[int]) -> None:
    shuffled = random.Random(seed)
    async with open_store_apart(database, size=8) as store:
        [first] = await write(store, new("port 80", key="port"))
        [other] = await write(store, new("a neighbour"))

        async def step(number: int, what: int) -> None:
            await asyncio.sleep(shuffled.random() / 200)
            await _act(store, (first, other), number, what)

        await asyncio.gather(*(step(number, what) for number, what in enumerate(steps)))
        _check_times(store)


async def _act(store: Store, ends: tuple[UUID, UUID], number: int, what: int) -> None:
    edits, links = EditStore(store.db), LinkStore(store.db)
    if what == 0:
        await _replace(store, f"port {number}")
    elif what == 1:
        await edits.change(
            store.me, ends[0], MemoryChange({"tags": [str(number)]}, "", "edited"), {}
        )
    elif what == 2:
        await edits.change(
            store.me, ends[1], MemoryChange(worded(f"neighbour {number}"), "", "edited"), {}
        )
    elif what == 3:
        await store.memories.remember(store.me, [new("a neighbour", tags=(str(number),))], {})
    else:
        put = await links.put(store.me, LinkRequest(*ends, EdgeKind.LED_TO, number / 100), {})
        if number % 2:
            with suppress(NotFound):  # another one closed it
                await links.close(store.me, put.id, {})


async def test_whatever_a_reader_can_see_of_a_restatement_is_a_version(store: Store) -> None:
    [memory] = await write(store, new("tabs", tags=("b",), metadata={"a": 1}, confidence=0.5))
    seen = [await store.memories.get(store.me, memory)]
    for again in (
        new("tabs", confidence=0.5),
        new("tabs", pinned=True),
        new("tabs", metadata={"b": 2}),
        new("tabs", tags=("a",)),
        new("tabs", summary="indent"),
        new("tabs", git={"commit": "abc"}),
        *(new("tabs") for _ in range(8)),
    ):
        [written] = await store.memories.remember(store.me, [again], {})
        assert isinstance(written, WriteResult)
        seen.append(await store.memories.get(store.me, memory))
        assert written.version == seen[-1].version
    for before, after in pairwise(seen):
        shown = [
            (m.confidence, m.pinned, m.metadata, m.tags, m.summary, m.git) for m in (before, after)
        ]
        assert (before.version == after.version) == (shown[0] == shown[1])
    assert seen[-1].confidence == 1.0
    assert seen[-1].version == seen[-2].version
    past = "select confidence::text, tags from memory_as_of(%s, %s) where id = %s"
    first = admin_rows(store.admin_url, past, store.me.tenant, seen[0].updated_at, memory)
    assert first == [("0.5", ["b"])]

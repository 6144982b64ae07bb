"""Merging and contradicting memories in the store, with races."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter
from uuid import UUID

import asyncpg
import pytest

from reverie.domain.core.errors import Conflict, InvalidInput
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import MemoryStatus, NewEdge
from reverie.domain.graph.duplicate_detection import DuplicateVerdict, MemoryComparison
from reverie.store.db.database import TenantConnection
from reverie.store.graph.links import LinkRequest, LinkStore
from reverie.store.memories.duplicates import DuplicateCandidate, DuplicateOutcome, DuplicateStore
from reverie.store.memories.memories import ListFilter
from tests.support.store_setup import Store, admin_rows, new, write

SAME = MemoryComparison(DuplicateVerdict.DUPLICATE, "the same words")
AGAINST = MemoryComparison(DuplicateVerdict.CONTRADICTING, "3 became 5")


async def read(store: Store, memory: UUID) -> DuplicateCandidate:
    """The memory, its slow path taken as done."""
    sql = "update memory set enriched_version = version where id = %s"
    admin_rows(store.admin_url, sql, memory)
    [found] = await DuplicateStore(store.db).load_candidates(store.me.tenant, [memory])
    return found


async def merge(
    store: Store,
    one: DuplicateCandidate,
    two: DuplicateCandidate,
    similarity: MemoryComparison = SAME,
) -> DuplicateOutcome | None:
    tenant = store.me.tenant, store.me.tenant_name
    return await DuplicateStore(store.db).merge(tenant, one, two, similarity, {})


async def test_a_merge_keeps_both_sources_and_moves_the_edges(store: Store) -> None:
    third, cause = await write(store, new("a file note"), new("the reason"))
    [one] = await write(store, new("use redis here", tags=("a",), agent="x"))
    edges = (
        NewEdge(third, EdgeKind.RELATES_TO),
        NewEdge(one, EdgeKind.RELATES_TO),
        NewEdge(cause, EdgeKind.CAUSED_BY),
    )
    [two] = await write(
        store, new("use Redis here!", tags=("b",), agent="y", edges=edges, confidence=0.9)
    )
    older, newer = await read(store, one), await read(store, two)
    made = await merge(store, older, newer)
    assert made is not None
    assert made.id == two
    kept = await store.memories.get(store.me, two)
    gone = await store.memories.get(store.me, one)
    assert kept.tags == ("a", "b")
    assert kept.confidence == pytest.approx(0.95)
    assert [source["agent"] for source in kept.metadata["merged"]] == ["x"]
    assert (gone.status, gone.superseded_by) == (MemoryStatus.SUPERSEDED, two)
    shown, near = await store.memories.get_with_neighbours(store.me, one)
    assert shown == kept
    open_edges = "select count(*) from edge where known_to is null and %s in (src, dst)"
    assert admin_rows(store.admin_url, open_edges, one) == [(0,)]
    assert sorted(n.id for n in near) == sorted([third, cause])
    versions = "select memory, content from memory_version order by content"
    assert admin_rows(store.admin_url, versions) == [
        (two, "use Redis here!"),
        (one, "use redis here"),
    ]
    assert await merge(store, older, newer) is None
    words = "select count(*) from posting p join memory m using (tenant, doc) where m.id = %s"
    assert admin_rows(store.admin_url, words, one) == [(0,)]


async def test_a_link_to_a_merged_memory_goes_to_what_it_became(store: Store) -> None:
    [kept, gone, other] = await write(
        store, new("use redis here"), new("use Redis here!"), new("the outage")
    )
    assert await merge(store, await read(store, kept), await read(store, gone))
    links = LinkStore(store.db)
    linked = await links.put(store.me, LinkRequest(other, gone, EdgeKind.LED_TO), {})
    assert linked.event is not None
    assert json.loads(linked.event.payload)["to"] == str(kept)
    _, near = await store.memories.get_with_neighbours(store.me, kept)
    assert [n.id for n in near] == [other]
    for end in (kept, gone):
        with pytest.raises(Conflict, match="would close a causal cycle"):
            await links.put(store.me, LinkRequest(end, other, EdgeKind.LED_TO), {})
    with pytest.raises(InvalidInput, match="is the memory that the link leaves from"):
        await links.put(store.me, LinkRequest(kept, gone, EdgeKind.RELATES_TO), {})


async def test_links_and_merges_that_race_leave_no_causal_cycle_and_no_edge_of_a_merged_memory(
    store: Store,
) -> None:
    for attempt in range(6):
        [x, y, z] = await write(
            store, *(new(f"{attempt} use redis {text}") for text in ("here", "here!", "there"))
        )
        older, newer = await read(store, x), await read(store, y)
        links = LinkStore(store.db)
        done = await asyncio.gather(
            links.put(store.me, LinkRequest(z, y, EdgeKind.LED_TO), {}),
            merge(store, older, newer),
            links.put(store.me, LinkRequest(x, z, EdgeKind.LED_TO), {}),
            links.put(store.me, LinkRequest(z, y, EdgeKind.DEPENDS_ON), {}),
            return_exceptions=True,
        )
        assert all(not isinstance(one, Exception) or isinstance(one, Conflict) for one in done)
        rows = admin_rows(
            store.admin_url, "select src, dst from edge where kind = 'led_to' and known_to is null"
        )
        graph = TopologicalSorter[UUID]()
        for source, target in rows:
            graph.add(target, source)
        graph.prepare()
    dangling = """
    select e.id from edge e join memory m on m.id in (e.src, e.dst)
    where e.known_to is null and m.merged_into is not null
    """
    assert admin_rows(store.admin_url, dangling) == []


async def test_raising_the_weight_of_a_link_has_an_actor_an_event_and_a_past(store: Store) -> None:
    [a, b] = await write(store, new("one"), new("two"))
    links = LinkStore(store.db)
    first = await links.put(store.me, LinkRequest(a, b, EdgeKind.RELATES_TO, 0.3), {})
    reader = replace(store.me, key_id="another")
    raised = await links.put(reader, LinkRequest(a, b, EdgeKind.RELATES_TO, 0.8), {})
    assert (raised.id, raised.created) == (first.id, False)
    assert raised.event is not None
    same = await links.put(store.me, LinkRequest(a, b, EdgeKind.RELATES_TO, 0.5), {})
    assert (same.id, same.event) == (first.id, None)
    edges = "select weight::text, actor, closed_by from edge order by known_from"
    assert admin_rows(store.admin_url, edges) == [
        ("0.3", store.me.actor, reader.actor),
        ("0.8", reader.actor, None),
    ]
    moment = "select known_from from edge where known_to is null"
    [(at,)] = admin_rows(store.admin_url, moment)
    shown = "select weight::text from edge_as_of(%s, %s)"
    before = at - timedelta(microseconds=1)
    assert admin_rows(store.admin_url, shown, store.me.tenant, before) == [("0.3",)]
    assert admin_rows(store.admin_url, shown, store.me.tenant, at) == [("0.8",)]


async def test_two_concurrent_merges_of_a_pair_leave_one_memory_reachable_by_both_ids(
    store: Store,
) -> None:
    ids = await write(store, *[new(f"use redis here {'!' * n}") for n in range(4)])
    found = [await read(store, one) for one in ids]
    pairs = [(a, b) for a in found for b in found if a.id != b.id]
    done = await asyncio.gather(*(merge(store, a, b) for a, b in pairs))
    assert any(done)
    for _ in range(len(ids)):
        active = await store.memories.page(store.me, None, 9, ListFilter())
        rest = [await read(store, m.id) for m in active]
        if len(rest) > 1:
            await merge(store, rest[1], rest[0])
    [last] = await store.memories.page(store.me, None, 9, ListFilter())
    assert {await store.memories.resolve(store.me, str(one)) for one in ids} == {last.id}
    loops = "select count(*) from memory where merged_into = id or merged_into is null"
    assert admin_rows(store.admin_url, loops) == [(1,)]


async def test_a_merge_never_closes_a_causal_circle(store: Store) -> None:
    [one] = await write(store, new("use redis here"))
    [mid] = await write(store, new("between", edges=(NewEdge(one, EdgeKind.CAUSED_BY),)))
    caused = (NewEdge(mid, EdgeKind.CAUSED_BY),)
    [two] = await write(store, new("use Redis here!", edges=caused))
    assert await merge(store, await read(store, one), await read(store, two))
    _, near = await store.memories.get_with_neighbours(store.me, one)
    assert [(n.id, n.type, n.direction) for n in near] == [(mid, "led_to", "out")]


async def test_pairs_with_other_scopes_keys_periods_or_pins_are_not_merged(store: Store) -> None:
    then = datetime(2024, 1, 1, tzinfo=UTC)
    texts = [
        new("use redis here", key="a", scope="agent/x"),
        new("use redis here!", key="b", scope="agent/x"),
        new("use redis here!!", scope="agent/y"),
        new("use redis here", valid_to=then),
        new("use redis here!", valid_from=then),
        new("use redis there", pinned=True),
        new("use redis there!", pinned=True),
    ]
    ids = await write(store, *texts)
    found = [await read(store, one) for one in ids]
    for one, two in ((0, 1), (0, 2), (3, 4), (5, 6)):
        assert await merge(store, found[one], found[two]) is None
    for of in found:
        [near] = await DuplicateStore(store.db).find_similar(store.me.tenant, [of], 8)
        assert {one.scope for one in near} <= {of.scope}
    [theirs] = await write(store, new("use redis here", scope="agent/x"), who=store.other)
    assert await DuplicateStore(store.db).load_candidates(store.me.tenant, [theirs]) == []
    assert len(await store.memories.page(store.me, None, 20, ListFilter())) == len(ids)


async def test_a_pinned_memory_absorbs_the_other_unchanged(store: Store) -> None:
    one, two = await write(
        store,
        new("use redis here", confidence=0.9),
        new("use redis here, always", pinned=True, confidence=0.5),
    )
    fuller = MemoryComparison(DuplicateVerdict.DUPLICATE, "the same", "older")
    made = await merge(store, await read(store, one), await read(store, two), fuller)
    assert made is not None
    assert made.id == two
    kept = await store.memories.get(store.me, two)
    assert (kept.content, kept.pinned) == ("use redis here, always", True)


async def test_a_contradiction_is_recorded_once(store: Store) -> None:
    one, two = await write(store, new("the limit is 3", confidence=0.8), new("the limit is 5"))
    duplicates = DuplicateStore(store.db)
    tenant = store.me.tenant, store.me.tenant_name
    pair = await read(store, one), await read(store, two)
    done = await asyncio.gather(
        *(duplicates.contradict(tenant, *pair, AGAINST, {}) for _ in range(4))
    )
    assert [d.version for d in done if d] == [2]
    again = await read(store, one), await read(store, two)
    assert await duplicates.contradict(tenant, *again, AGAINST, {}) is None
    assert (await store.memories.get(store.me, one)).confidence == pytest.approx(0.4)
    told = "select payload from outbox where subject = 'memory.one.contradicted'"
    [(payload,)] = admin_rows(store.admin_url, told)
    assert (payload["id"], payload["by"]) == (str(one), str(two))
    edge = "select meta ->> 'reason' from edge where kind = 'contradicts' and src = %s"
    assert admin_rows(store.admin_url, edge, two) == [("3 became 5",)]


async def test_a_memory_is_shown_with_neighbours_of_the_same_moment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await write(store, new("the pool holds 8"), new("the pool holds 12"))
    older, newer = await read(store, one), await read(store, two)
    rows = TenantConnection.fetch_rows

    async def late(tenant: TenantConnection, name: str, *args: object) -> list[asyncpg.Record]:
        if name == "memory_neighbours":
            monkeypatch.undo()
            told = store.me.tenant, store.me.tenant_name
            assert await DuplicateStore(store.db).contradict(told, older, newer, AGAINST, {})
        return await rows(tenant, name, *args)

    monkeypatch.setattr(TenantConnection, "fetch_rows", late)
    memory, near = await store.memories.get_with_neighbours(store.me, one)
    assert (memory.version, near) == (1, [])
    memory, near = await store.memories.get_with_neighbours(store.me, one)
    assert memory.version == 2
    assert [other.id for other in near] == [two]

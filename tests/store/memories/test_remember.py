"""Concurrent writes of one key or one content in the store, and pictures beside memories."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.domain.core.consistency import IdempotencyClaim
from reverie.domain.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import MemoryStatus, NewEdge, WriteOutcome, WriteResult
from reverie.store.db.idempotency import IdempotencyTable
from reverie.store.memories.forgetting import ForgettingStore
from reverie.store.memories.memories import build_events
from reverie.store.memories.pictures import PictureStore
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, new, open_store_apart, principal, write

LOSING = """
create sequence tried;
grant usage on tried to reverie_app;
create function lose() returns trigger language plpgsql as $$
begin
  if nextval('tried') = 1 then
    raise exception using errcode = '{}', message = 'another was first';
  end if;
  return new;
end $$;
create trigger lose before insert on memory for each row execute function lose()
"""


async def test_ten_writers_of_one_key_leave_one_memory_and_nine_conflicts(store: Store) -> None:
    found = await asyncio.gather(
        *(store.memories.remember(store.me, [new(f"value {n}", key="k")], {}) for n in range(10))
    )
    answers = [one for [one] in found]
    [won] = [one for one in answers if isinstance(one, WriteResult)]
    lost = [one for one in answers if isinstance(one, Conflict)]
    assert won.outcome is WriteOutcome.CREATED
    assert len(lost) == 9
    rows = admin_rows(store.admin_url, "select id, status, version from memory")
    assert rows == [(won.id, "active", 1)]
    assert admin_rows(store.admin_url, "select count(*) from outbox") == [(1,)]


async def test_ten_writers_with_a_reason_leave_one_active_memory_and_a_chain(store: Store) -> None:
    found = await asyncio.gather(
        *(
            store.memories.remember(
                store.me, [new(f"value {n}", key="k", supersede_reason=f"because {n}")], {}
            )
            for n in range(10)
        )
    )
    outcomes = Counter(one.outcome for [one] in found if isinstance(one, WriteResult))
    assert outcomes == {WriteOutcome.CREATED: 1, WriteOutcome.SUPERSEDED: 9}
    rows = admin_rows(store.admin_url, "select id, status, superseded_by, version from memory")
    after = {memory: successor for memory, _, successor, _ in rows}
    [last] = [memory for memory, status, _, _ in rows if status == "active"]
    assert Counter(status for _, status, _, _ in rows) == {"active": 1, "superseded": 9}
    [first] = set(after) - set(after.values())
    chain = [first]
    while successor := after[chain[-1]]:
        chain.append(successor)
    assert len(chain) == 10
    assert chain[-1] == last
    edges = admin_rows(store.admin_url, "select src, dst from edge where kind = 'supersedes'")
    assert {old: by for by, old in edges} == {old: by for old, by in after.items() if by}
    kept = admin_rows(
        store.admin_url,
        "select v.memory, v.version, v.reason like 'because %%', v.content = m.content"
        " from memory_version v join memory m on m.id = v.memory",
    )
    assert sorted(kept) == sorted((memory, 1, True, True) for memory in chain[:-1])


async def test_a_write_that_loses_a_race_is_retried_and_refused_if_it_loses_every_one(
    store: Store,
) -> None:
    for lost in ("serialization_failure", "deadlock_detected"):
        admin_rows(store.admin_url, LOSING.format(lost))
        [one] = await write(store, new(f"Written after a {lost}"))
        assert (await store.memories.get(store.me, one)).content == f"Written after a {lost}"
        admin_rows(store.admin_url, "drop trigger lose on memory; drop sequence tried")
        admin_rows(store.admin_url, "drop function lose")
    for error, seen in (("deadlock_detected", "many writers"), ("disk_full", "disk is full")):
        admin_rows(store.admin_url, LOSING.format(error).replace("= 1", "> 0"))
        with pytest.raises(Unavailable, match=seen):
            await write(store, new("Never written"))
        admin_rows(store.admin_url, "drop trigger lose on memory; drop sequence tried")
        admin_rows(store.admin_url, "drop function lose")


async def test_a_conflict_with_an_unreadable_memory_reveals_nothing(store: Store) -> None:
    await write(store, new("secret", key="k", scope="project/p"))
    blind = principal(store.me.tenant, "one", reads=("global",))
    good, bad = new("sound"), new("mine", key="k", scope="project/p")
    [written, answer] = await store.memories.remember(blind, [good, bad], {})
    assert isinstance(written, WriteResult)
    assert isinstance(answer, Conflict)
    assert answer.current is None
    assert "secret" not in str(answer)


async def test_ten_writers_of_one_content_leave_one_memory_with_more_confidence(
    store: Store,
) -> None:
    found = await asyncio.gather(
        *(
            store.memories.remember(store.me, [new("one and the same", confidence=0.5)], {})
            for _ in range(10)
        )
    )
    outcomes = Counter(one.outcome for [one] in found if isinstance(one, WriteResult))
    assert outcomes == {WriteOutcome.CREATED: 1, WriteOutcome.DUPLICATE: 9}
    assert len({one.id for [one] in found if isinstance(one, WriteResult)}) == 1
    [(count, confidence)] = admin_rows(
        store.admin_url, "select count(*), max(confidence)::float8 from memory"
    )
    assert count == 1
    assert confidence == pytest.approx(0.95, abs=1e-6)


async def test_returned_events_equal_stored_events(store: Store) -> None:
    headers = {"traceparent": "00-1-2-01"}
    for one in (new("told", key="k"), new("newer", key="k", supersede_reason="it changed")):
        [written] = await store.memories.remember(store.me, [one], headers)
        assert isinstance(written, WriteResult)
        told = build_events(store.me, written, headers)
        stored = admin_rows(
            store.admin_url, "delete from outbox returning id, subject, payload, headers"
        )
        assert sorted(stored) == sorted(
            (event.id, event.subject, json.loads(event.payload), event.headers) for event in told
        )
    assert [event.subject for event in told] == ["memory.one.superseded", "memory.one.remembered"]


async def test_batches_that_overlap_in_opposite_order_are_all_stored(store: Store) -> None:
    keys = [f"k{n}" for n in range(6)]
    await write(store, *(new(f"first {key}", key=key) for key in keys))

    async def batch(n: int) -> None:
        order = keys if n % 2 else keys[::-1]
        items = [new(f"{n} of {key}", key=key, supersede_reason="newer") for key in order]
        await write(store, *items)

    for round_ in range(3):
        await asyncio.gather(*(batch(round_ * 8 + n) for n in range(8)))
    active = admin_rows(
        store.admin_url, "select key, count(*) from memory where status = 'active' group by key"
    )
    assert dict(active) == dict.fromkeys(keys, 1)


async def test_a_batch_answers_its_items_in_order(store: Store) -> None:
    await write(store, new("old", key="taken"))
    found = await store.memories.remember(
        store.me,
        [
            new("fresh"),
            new("other", key="taken"),
            new("linked", edges=(NewEdge(uuid4(), EdgeKind.RELATES_TO),)),
            new("fresh"),
        ],
        {},
    )
    first, conflict, missing, duplicate = found
    assert isinstance(first, WriteResult)
    assert isinstance(conflict, Conflict)
    assert isinstance(missing, InvalidInput)
    assert isinstance(duplicate, WriteResult)
    assert (duplicate.id, duplicate.outcome) == (first.id, WriteOutcome.DUPLICATE)
    assert admin_rows(store.admin_url, "select count(*) from memory") == [(2,)]


async def test_a_repeated_request_finds_its_write_whatever_happened_between(store: Store) -> None:
    table, me = IdempotencyTable(store.db, 0.0), store.me

    async def sent(
        text: str, request: str, why: str | None = "it moved"
    ) -> WriteResult | Exception:
        assert await table.begin(me.tenant, request, "/r", b"a") is IdempotencyClaim.ACQUIRED
        item = new(text, key="port", supersede_reason=why)
        return (await store.memories.remember(me, [item], {}, request))[0]

    first, other = await sent("It listens on 80.", "k/1"), await sent("It listens on 81.", "k/2")
    # Its connection broke after the commit, so that it was taken for failed.
    await table.abandon(me.tenant, "k/1")
    assert await table.begin(me.tenant, "k/1", "/r", b"b") is IdempotencyClaim.KEY_REUSED
    assert await sent("It listens on 80.", "k/1") == first
    assert isinstance(first, WriteResult)
    assert isinstance(other, WriteResult)
    assert (await store.memories.get(me, other.id)).status is MemoryStatus.ACTIVE
    found = admin_rows(store.admin_url, "select id from memory")
    assert {id for (id,) in found} == {first.id, other.id}
    # What changed nothing may be tried again.
    assert isinstance(await sent("It is 82.", "k/3", None), Conflict)
    await table.abandon(me.tenant, "k/3")
    assert isinstance(await sent("It is 82.", "k/3"), WriteResult)


async def test_a_picture_does_not_outlive_the_erasure_of_its_memory(shared_store: Store) -> None:
    store = shared_store
    pictures = PictureStore(store.db)
    [memory] = await write(store, new("The shop in one picture."))
    assert await pictures.put(store.me, memory, b"1" * 32, "image/png", b"pixels")
    assert not await pictures.put(store.me, memory, b"1" * 32, "image/png", b"pixels")
    forget = "update memory set status = 'deleted' where id = %s returning id"
    admin_rows(store.admin_url, forget, memory)
    erased = await ForgettingStore(store.db).erase(store.me.tenant, memory)
    assert erased["picture"] == 1
    for gone in (memory, uuid4()):
        with pytest.raises(NotFound):
            await pictures.put(store.me, gone, b"2" * 32, "image/png", b"pixels")
    kept = "select count(*) from picture where tenant = %s"
    assert admin_rows(store.admin_url, kept, store.me.tenant) == [(0,)]


SAVES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans()), min_size=2, max_size=12
)
FEW = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ACTIVE = """
select count(*) from memory where tenant = %s and status = 'active' and key is not null
group by scope, key having count(*) > 1
"""
CHAINS = """
select count(*) from memory m
where m.tenant = %s and m.status = 'superseded' and not exists (
  select from edge e where e.tenant = m.tenant and e.dst = m.id and e.kind = 'supersedes'
    and e.known_to is null and e.src = m.superseded_by)
"""


@FEW
@given(saves=SAVES)
def test_one_memory_is_active_under_a_key_however_many_writers_race(
    shared_database: DatabaseUrls, saves: Sequence[tuple[str, int, bool]]
) -> None:
    async def save_all() -> None:
        async with open_store_apart(shared_database, size=6) as store:
            await asyncio.gather(*(_save(store, *save) for save in saves))
            assert admin_rows(store.admin_url, ACTIVE, store.me.tenant) == []
            assert admin_rows(store.admin_url, CHAINS, store.me.tenant) == [(0,)]

    asyncio.run(save_all())


async def _save(store: Store, key: str, number: int, reasoned: bool) -> None:
    item = new(f"text {number}", key=key, supersede_reason="newer" if reasoned else None)
    [found] = await store.memories.remember(store.me, [item], {})
    assert reasoned is False or not isinstance(found, Conflict)

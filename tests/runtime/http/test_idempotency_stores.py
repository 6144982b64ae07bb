"""Idempotency keys in Postgres and in memory behave alike."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from reverie.domain.core.consistency import IdempotencyClaim, StoredReply
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.store.db.database import open_database
from reverie.store.db.idempotency import CLAIM_LEASE, IdempotencyTable
from reverie.testing.servers import DatabaseUrls
from tests.support.in_memory_runtime import InMemoryIdempotency
from tests.support.store_setup import add_tenants, admin_rows

REPLY = StoredReply(201, bytes(range(256)), {"content-type": "application/json"})
BODY, OTHER_BODY = b"a" * 32, b"b" * 32


@dataclass(frozen=True)
class Keys:
    """A store, and two tenants that nobody else has."""

    store: IdempotencyStore
    me: int
    other: int


@pytest.fixture
async def table(shared_database: DatabaseUrls) -> AsyncIterator[Keys]:
    names = (f"keys-{uuid4().hex}" for _ in range(2))
    one, two = add_tenants(shared_database.admin_url, *names)
    async with open_database(shared_database.service_url) as db:
        yield Keys(IdempotencyTable(db), one, two)


@pytest.fixture(params=["memory", "postgres"])
def keys(request: pytest.FixtureRequest) -> Keys:
    if request.param == "memory":
        return Keys(InMemoryIdempotency(), 1, 2)
    found: Keys = request.getfixturevalue("table")
    return found


async def test_of_ten_concurrent_requests_one_runs_and_nine_wait(keys: Keys) -> None:
    begun = (keys.store.begin(keys.me, "k", "/r", BODY) for _ in range(10))
    claims = await asyncio.gather(*begun)
    assert Counter(claims) == {IdempotencyClaim.ACQUIRED: 1, IdempotencyClaim.IN_PROGRESS: 9}


async def test_a_key_identifies_one_request_and_answers_it_with_the_bytes_of_the_first(
    keys: Keys,
) -> None:
    store = keys.store
    assert await store.begin(keys.me, "k", "/r", BODY) is IdempotencyClaim.ACQUIRED
    for is_finished in (False, True):
        if is_finished:
            await store.finish(keys.me, "k", REPLY)
            assert await store.begin(keys.me, "k", "/r", BODY) == REPLY
        for route, body in (("/r", OTHER_BODY), ("/other", BODY)):
            found = await store.begin(keys.me, "k", route, body)
            assert found is IdempotencyClaim.KEY_REUSED


async def test_a_body_known_only_later_is_recorded_with_its_answer(keys: Keys) -> None:
    store = keys.store
    assert await store.begin(keys.me, "k", "/r", None) is IdempotencyClaim.ACQUIRED
    await store.renew(keys.me, "k")
    assert await store.begin(keys.me, "k", "/r", None) is IdempotencyClaim.IN_PROGRESS
    assert await store.begin(keys.me, "k", "/other", None) is IdempotencyClaim.KEY_REUSED
    await store.finish(keys.me, "k", replace(REPLY, request_hash=BODY))
    found = await store.begin(keys.me, "k", "/r", None)
    assert isinstance(found, StoredReply)
    assert (found, found.request_hash) == (REPLY, BODY)
    assert await store.begin(keys.me, "k", "/r", BODY) == REPLY
    assert await store.begin(keys.me, "k", "/r", OTHER_BODY) is IdempotencyClaim.KEY_REUSED


async def test_a_failed_request_frees_its_key(keys: Keys) -> None:
    await keys.store.begin(keys.me, "k", "/r", BODY)
    await keys.store.abandon(keys.me, "k")
    assert await keys.store.begin(keys.me, "k", "/r", OTHER_BODY) is IdempotencyClaim.ACQUIRED


async def test_a_key_belongs_to_one_tenant(keys: Keys) -> None:
    await keys.store.begin(keys.me, "k", "/r", BODY)
    await keys.store.finish(keys.me, "k", REPLY)
    assert await keys.store.begin(keys.other, "k", "/r", OTHER_BODY) is IdempotencyClaim.ACQUIRED
    await keys.store.abandon(keys.other, "k")
    assert await keys.store.begin(keys.me, "k", "/r", BODY) == REPLY


def _age(database: DatabaseUrls, keys: Keys) -> None:
    """The lease of all keys has ended."""
    statement = "update idempotency set at = at - make_interval(secs => %s) where tenant = %s"
    admin_rows(database.admin_url, statement, CLAIM_LEASE.total_seconds() + 1, keys.me)


async def test_a_key_whose_holder_died_passes_to_the_next_request(
    shared_database: DatabaseUrls, table: Keys
) -> None:
    store, me = table.store, table.me
    await store.begin(me, "k", "/r", BODY)
    _age(shared_database, table)
    await store.renew(me, "k")
    assert await store.begin(me, "k", "/other", OTHER_BODY) is IdempotencyClaim.KEY_REUSED
    _age(shared_database, table)
    assert await store.begin(me, "k", "/other", OTHER_BODY) is IdempotencyClaim.ACQUIRED
    assert await store.begin(me, "k", "/other", OTHER_BODY) is IdempotencyClaim.IN_PROGRESS
    assert await store.begin(me, "k", "/r", BODY) is IdempotencyClaim.KEY_REUSED


async def test_a_stored_answer_does_not_lapse_with_its_lease(
    shared_database: DatabaseUrls, table: Keys
) -> None:
    await table.store.begin(table.me, "k", "/r", BODY)
    await table.store.finish(table.me, "k", REPLY)
    _age(shared_database, table)
    assert await table.store.begin(table.me, "k", "/r", BODY) == REPLY
    await table.store.abandon(table.me, "k")
    assert await table.store.begin(table.me, "k", "/r", BODY) == REPLY

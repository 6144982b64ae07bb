"""Idempotency keys in Postgres and in memory behave alike."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from reverie.domain.core.consistency import IdempotencyClaim, StoredReply
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.store.db.database import open_database
from reverie.store.db.idempotency import CLAIM_LEASE, IdempotencyTable
from reverie.testing.servers import DatabaseUrls
from tests.support.in_memory_runtime import InMemoryIdempotency
from tests.support.store_setup import add_tenants, admin_rows

REPLY = StoredReply(201, b'{"id": 1}', {"content-type": "application/json"})
BODY, OTHER_BODY = b"a" * 32, b"b" * 32


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[IdempotencyStore]:
    if request.param == "memory":
        yield InMemoryIdempotency()
        return
    database: DatabaseUrls = request.getfixturevalue("database")
    add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url) as db:
        yield IdempotencyTable(db)


async def test_of_ten_concurrent_requests_one_runs_and_nine_wait(
    store: IdempotencyStore,
) -> None:
    found = await asyncio.gather(*(store.begin(1, "k", "/r", BODY) for _ in range(10)))
    assert Counter(found) == {IdempotencyClaim.ACQUIRED: 1, IdempotencyClaim.IN_PROGRESS: 9}


async def test_a_repeated_request_gets_the_stored_answer(store: IdempotencyStore) -> None:
    assert await store.begin(1, "k", "/r", BODY) is IdempotencyClaim.ACQUIRED
    await store.finish(1, "k", REPLY)
    for _ in range(2):
        assert await store.begin(1, "k", "/r", BODY) == REPLY


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(("route", "body"), [("/r", OTHER_BODY), ("/other", BODY)])
async def test_a_key_identifies_one_request(
    store: IdempotencyStore, finished: bool, route: str, body: bytes
) -> None:
    await store.begin(1, "k", "/r", BODY)
    if finished:
        await store.finish(1, "k", REPLY)
    assert await store.begin(1, "k", route, body) is IdempotencyClaim.KEY_REUSED


async def test_a_body_known_only_later_is_recorded_with_its_answer(store: IdempotencyStore) -> None:
    assert await store.begin(1, "k", "/r", None) is IdempotencyClaim.ACQUIRED
    await store.renew(1, "k")
    assert await store.begin(1, "k", "/r", None) is IdempotencyClaim.IN_PROGRESS
    assert await store.begin(1, "k", "/other", None) is IdempotencyClaim.KEY_REUSED
    await store.finish(1, "k", replace(REPLY, request_hash=BODY))
    found = await store.begin(1, "k", "/r", None)
    assert isinstance(found, StoredReply)
    assert (found, found.request_hash) == (REPLY, BODY)
    assert await store.begin(1, "k", "/r", BODY) == REPLY
    assert await store.begin(1, "k", "/r", OTHER_BODY) is IdempotencyClaim.KEY_REUSED


async def test_a_failed_request_frees_its_key(store: IdempotencyStore) -> None:
    await store.begin(1, "k", "/r", BODY)
    await store.abandon(1, "k")
    assert await store.begin(1, "k", "/r", OTHER_BODY) is IdempotencyClaim.ACQUIRED


async def test_a_key_belongs_to_one_tenant(store: IdempotencyStore) -> None:
    await store.begin(1, "k", "/r", BODY)
    await store.finish(1, "k", REPLY)
    assert await store.begin(2, "k", "/r", OTHER_BODY) is IdempotencyClaim.ACQUIRED
    await store.abandon(2, "k")
    assert await store.begin(1, "k", "/r", BODY) == REPLY


async def test_an_answer_of_arbitrary_bytes_is_returned_unchanged(
    store: IdempotencyStore,
) -> None:
    reply = StoredReply(200, bytes(range(256)), {})
    await store.begin(1, "k", "/r", BODY)
    await store.finish(1, "k", reply)
    assert await store.begin(1, "k", "/r", BODY) == reply


async def test_a_key_whose_holder_died_passes_to_the_next_request(
    database: DatabaseUrls,
) -> None:
    add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url) as db:
        store = IdempotencyTable(db)
        await store.begin(1, "k", "/r", BODY)
        admin_rows(
            database.admin_url,
            "update idempotency set at = at - make_interval(secs => %s)",
            CLAIM_LEASE.total_seconds() + 1,
        )
        await store.renew(1, "k")
        assert await store.begin(1, "k", "/other", OTHER_BODY) is IdempotencyClaim.KEY_REUSED
        admin_rows(
            database.admin_url,
            "update idempotency set at = at - make_interval(secs => %s)",
            CLAIM_LEASE.total_seconds() + 1,
        )
        assert await store.begin(1, "k", "/other", OTHER_BODY) is IdempotencyClaim.ACQUIRED
        assert await store.begin(1, "k", "/other", OTHER_BODY) is IdempotencyClaim.IN_PROGRESS
        assert await store.begin(1, "k", "/r", BODY) is IdempotencyClaim.KEY_REUSED


async def test_a_stored_answer_does_not_lapse_with_its_lease(database: DatabaseUrls) -> None:
    add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url) as db:
        store = IdempotencyTable(db)
        await store.begin(1, "k", "/r", BODY)
        await store.finish(1, "k", REPLY)
        admin_rows(database.admin_url, "update idempotency set at = at - interval '1 hour'")
        assert await store.begin(1, "k", "/r", BODY) == REPLY
        await store.abandon(1, "k")
        assert await store.begin(1, "k", "/r", BODY) == REPLY

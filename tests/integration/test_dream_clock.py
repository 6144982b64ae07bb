"""When scopes dream: what is counted, whose limits hold, the clock of ingest, no worker at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID

import pytest
from pydantic import SecretStr

from reverie.bus.connection import connect
from reverie.bus.port import Bus
from reverie.bus.streams import DREAM_WORKERS, ensure_streams
from reverie.domain.dreaming import Limits
from reverie.domain.ids import new_id
from reverie.dream import app as dream_app
from reverie.dream.digest import dream
from reverie.dream.parts import Parts
from reverie.ingest import app as ingest_app
from reverie.runtime.service import running
from reverie.runtime.settings import Settings
from reverie.store.dream_runs import TENANT_WIDE, DreamLimits
from reverie.store.sessions import Appended, NewTurn
from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, open_store
from tests.integration.test_dream_worker import HOUR, dream_parts
from tests.stack import eventually

SCOPES = 12
ME = "name = 'one'"
TENDED = ("*", "done", "tend", 0)
TALK = "Why do {0} fail? Because the {0} table has no index, as src/{0}.py shows us."


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with open_store(database) as made:
        yield made


async def _say(
    store: Store, parts: Parts, session: UUID, limits: Limits, *words: str, role: str = "user"
) -> Appended:
    turns = [NewTurn(new_id(), role, text, text) for text in words]
    return await parts.sessions.append(store.me, session, turns, limits)


async def test_all_sessions_of_a_scope_count_together_and_the_nearest_limits_hold(
    store: Store,
) -> None:
    parts, limits = dream_parts(store), Limits(segments=3, turns=100, chars=100_000)
    scope, kept = "project/shop", DreamLimits(store.db)
    one, two = [
        (await parts.sessions.start(store.me, new_id(), scope, {"agent": "ann"}))[0]
        for _ in range(2)
    ]
    assert (await _say(store, parts, one, limits, "first", "second")).due is None
    assert (await _say(store, parts, two, limits, "an answer", role="assistant")).due is None
    assert (await _say(store, parts, two, limits, "third")).due == "segments"
    tenant = store.me.tenant
    await kept.change(tenant, TENANT_WIDE, {"segments": 10}, limits)
    assert (await _say(store, parts, two, limits, "fourth")).due is None
    assert [one.reason for one in await parts.dreams.wanted(limits)] == []
    await kept.change(tenant, "shop", {"chars": 20}, limits)
    assert (await _say(store, parts, one, limits, "fifth")).due == "characters"
    [wanted] = await parts.dreams.wanted(limits)
    assert (wanted.scope, wanted.reason, wanted.silent_seconds) == (scope, "characters", None)
    await parts.dreams.request(tenant, "one", scope, "characters", {})
    assert (await _say(store, parts, one, limits, "sixth")).due is None
    assert await parts.dreams.wanted(limits) == []
    await kept.change(tenant, "shop", None, limits)
    await kept.change(tenant, TENANT_WIDE, {"idle_minutes": 2**-20}, limits)
    admin_rows(store.admin_url, "delete from dream_job")
    assert [one.reason for one in await parts.dreams.wanted(limits)] == ["idle"]


async def test_an_open_topic_that_was_left_does_not_call_again_until_more_is_said(
    store: Store,
) -> None:
    parts = dream_parts(store)
    limits = Limits(segments=2, every_minutes=2**-20)
    session, scope = await parts.sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    assert (await _say(store, parts, session, limits, *["the mail queue stalls"] * 2)).due
    assert await _dreamt(store, parts, limits, "segments") == "done"
    [waits] = await parts.runs.waiting(store.me, scope, None, 9)
    assert (waits.turns, waits.segments, waits.fresh_turns, waits.state) == (2, 2, 0, "waiting")
    assert await parts.dreams.wanted(limits) == []
    assert (await _say(store, parts, session, limits, "and again")).due is None
    assert [one.reason for one in await parts.dreams.wanted(limits)] == ["time"]

    await parts.dreams.request(store.me.tenant, "one", scope, "time", {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    run = new_id()
    assert await parts.dreams.start(lease, run, "worker")
    await parts.dreams.sessions(lease, UUID(int=0), limits)
    await _say(store, parts, session, limits, "while it", "was busy")
    state, _ = await parts.dreams.finish(lease, run, {}, limits)
    assert state == "again"

    await parts.sessions.end(store.me, session, None)
    assert await _dreamt(store, parts, limits, "session end") == "done"
    assert await parts.runs.waiting(store.me, scope, None, 9) == []


async def _dreamt(store: Store, parts: Parts, limits: Limits, reason: str) -> str:
    await parts.dreams.request(store.me.tenant, "one", "global", reason, {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    return await dream(parts, lease)


async def test_an_end_whose_request_was_lost_is_asked_for_by_the_clock(store: Store) -> None:
    parts = dream_parts(store)
    session, _ = await parts.sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    await _say(store, parts, session, Limits(), "hello")
    await parts.sessions.end(store.me, session, None)
    assert await parts.dreams.wanted(Limits()) == []
    admin_rows(store.admin_url, "update session set ended = now() - interval '1 minute'")
    assert [one.reason for one in await parts.dreams.wanted(Limits())] == ["session end"]


async def test_two_clocks_and_no_worker_leave_one_ticket_a_scope_that_the_first_worker_takes(
    store: Store, database: Database, nats_url: str
) -> None:
    await ensure_streams(nats_url)
    settings = Settings(
        home=model_home(),
        database_url=SecretStr(database.service_url),
        nats_url=SecretStr(nats_url),
        clock_seconds=0.1,
        outbox_grace=0.5,
        dream_idle_minutes=0.001,
        model="none",
    )
    parts = dream_parts(store)
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(connect(nats_url, "witness"))
        await bus.wait_connected(10)
        for n in range(SCOPES):
            scope = f"project/p{n}"
            session, _ = await parts.sessions.start(store.me, new_id(), scope, {"agent": "ann"})
            await _say(store, parts, session, Limits(), TALK.format(f"queues{n}"))
        # One more wakes a worker that tends the memories of a tenant.
        admin_rows(store.admin_url, f"update tenant set tended = now() - interval '1 d' where {ME}")
        for _ in range(2):
            service = await stack.enter_async_context(ingest_app.open_service(settings))
            await stack.enter_async_context(running(service, settings))

        async def asked() -> bool:
            return await _queue(store, bus) == (SCOPES, SCOPES + 1, 0)

        await eventually(asked)
        worker = await stack.enter_async_context(dream_app.open_service(settings))
        await stack.enter_async_context(running(worker, settings))

        async def done() -> bool:
            tended = f"select tended > now() - interval '1 h' from tenant where {ME}"
            return await _queue(store, bus) == (0, 0, 0) and bool(
                admin_rows(store.admin_url, tended)[0][0]
            )

        await eventually(done)
    runs = admin_rows(store.admin_url, "select scope, status, reason, turns from dream_run")
    # Tending is noted too, where memories were there before it came to look at them.
    digests = [run for run in runs if run != TENDED]
    assert sorted(digests) == sorted((f"project/p{n}", "done", "idle", 1) for n in range(SCOPES))
    assert len(runs) - len(digests) <= 1


async def _queue(store: Store, bus: Bus) -> tuple[int, int, int]:
    """Jobs, tickets that wait or are in work, events not yet on the bus."""
    counted = "select (select count(*) from dream_job), (select count(*) from outbox)"
    [(jobs, outbox)] = admin_rows(store.admin_url, counted)
    return jobs, await bus.lag(DREAM_WORKERS), outbox

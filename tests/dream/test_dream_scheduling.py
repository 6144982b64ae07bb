"""When scopes are due to dream, by whose limits, and the scheduler in ingest."""

from __future__ import annotations

from contextlib import AsyncExitStack
from uuid import UUID

from pydantic import SecretStr

from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import DREAM_WORKERS, ensure_streams
from reverie.domain.core.ids import new_id
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS, DreamThresholds
from reverie.runtime.service import start_service
from reverie.runtime.settings.settings import Settings
from reverie.store.sessions.dream_runs import ALL_PROJECTS, DreamLimitStore
from reverie.store.sessions.sessions import AppendResult, SessionStore, TurnToAppend
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.dream import app as dream_app
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.run_dream import run_dream
from reverie_services.ingest import app as ingest_app
from tests.dream.test_dream_worker import HOUR, dream_parts
from tests.support.stack import eventually
from tests.support.store_setup import Store, admin_rows

SCOPES = 12
ME = "name = 'one'"
TENDED = ("*", "done", "maintenance", 0)
TALK = "Why do {0} fail? Because the {0} table has no index, as src/{0}.py shows us."


async def _say(
    store: Store,
    parts: DigestDependencies,
    session: UUID,
    limits: DreamThresholds,
    *words: str,
    role: str = "user",
) -> AppendResult:
    turns = [TurnToAppend(new_id(), role, text, text) for text in words]
    return await SessionStore(store.db).append(store.me, session, turns, limits)


async def test_all_sessions_of_a_scope_count_together_and_the_nearest_limits_apply(
    store: Store,
) -> None:
    parts, limits = dream_parts(store), DreamThresholds(segments=3, turns=100, chars=100_000)
    scope, kept = "project/shop", DreamLimitStore(store.db)
    one, two = [
        (await SessionStore(store.db).start(store.me, new_id(), scope, {"agent": "ann"}))[0]
        for _ in range(2)
    ]
    assert (await _say(store, parts, one, limits, "first", "second")).due is None
    assert (await _say(store, parts, two, limits, "an answer", role="assistant")).due is None
    assert (await _say(store, parts, two, limits, "third")).due == "segments"
    tenant = store.me.tenant
    await kept.update(tenant, ALL_PROJECTS, {"segments": 10}, limits)
    assert (await _say(store, parts, two, limits, "fourth")).due is None
    assert [one.reason for one in await parts.dreams.list_due_scopes(limits)] == []
    await kept.update(tenant, "shop", {"chars": 20}, limits)
    assert (await _say(store, parts, one, limits, "fifth")).due == "characters"
    [wanted] = await parts.dreams.list_due_scopes(limits)
    assert (wanted.scope, wanted.reason, wanted.silent_seconds) == (scope, "characters", None)
    await parts.dreams.request(tenant, "one", scope, "characters", {})
    assert (await _say(store, parts, one, limits, "sixth")).due is None
    assert await parts.dreams.list_due_scopes(limits) == []
    await kept.update(tenant, "shop", None, limits)
    await kept.update(tenant, ALL_PROJECTS, {"idle_minutes": 2**-20}, limits)
    admin_rows(store.admin_url, "delete from dream_job")
    assert [one.reason for one in await parts.dreams.list_due_scopes(limits)] == ["idle"]


async def test_an_open_topic_left_for_later_is_not_due_again_until_more_is_said(
    store: Store,
) -> None:
    parts = dream_parts(store)
    limits = DreamThresholds(segments=2, interval_minutes=2**-20)
    session, scope = await SessionStore(store.db).start(
        store.me, new_id(), "global", {"agent": "ann"}
    )
    assert (await _say(store, parts, session, limits, *["the mail queue stalls"] * 2)).due
    assert await _dreamt(store, parts, limits, "segments") == "done"
    [waits] = await parts.dream_runs.list_pending(store.me, scope, None, 9)
    assert (waits.turns, waits.segments, waits.new_turns, waits.state) == (2, 2, 0, "waiting")
    assert await parts.dreams.list_due_scopes(limits) == []
    assert (await _say(store, parts, session, limits, "and again")).due is None
    assert [one.reason for one in await parts.dreams.list_due_scopes(limits)] == ["time"]

    await parts.dreams.request(store.me.tenant, "one", scope, "time", {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    run = new_id()
    assert await parts.dreams.start(lease, run, "worker")
    await parts.dreams.claim_sessions(lease, UUID(int=0), limits)
    await _say(store, parts, session, limits, "while it", "was busy")
    state, _ = await parts.dreams.finish(lease, run, {}, limits)
    assert state == "again"

    await SessionStore(store.db).end(store.me, session, None)
    assert await _dreamt(store, parts, limits, "session end") == "done"
    assert await parts.dream_runs.list_pending(store.me, scope, None, 9) == []


async def _dreamt(
    store: Store, parts: DigestDependencies, limits: DreamThresholds, reason: str
) -> str:
    await parts.dreams.request(store.me.tenant, "one", "global", reason, {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    return await run_dream(parts, lease)


async def test_a_session_end_whose_request_was_lost_is_requested_by_the_scheduler(
    store: Store,
) -> None:
    parts = dream_parts(store)
    session, _ = await SessionStore(store.db).start(store.me, new_id(), "global", {"agent": "ann"})
    await _say(store, parts, session, DreamThresholds(), "hello")
    await SessionStore(store.db).end(store.me, session, None)
    assert await parts.dreams.list_due_scopes(DreamThresholds()) == []
    admin_rows(store.admin_url, "update session set ended = now() - interval '1 minute'")
    assert [one.reason for one in await parts.dreams.list_due_scopes(DreamThresholds())] == [
        "session end"
    ]


async def test_two_schedulers_without_a_worker_leave_one_ticket_per_scope(
    store: Store, database: DatabaseUrls, nats_url: str
) -> None:
    await ensure_streams(nats_url)
    settings = Settings(
        home=model_home(),
        database_url=SecretStr(database.service_url),
        nats_url=SecretStr(nats_url),
        scheduler_interval=0.1,
        outbox_sweep_after=0.5,
        embedding_model="none",
    )
    parts = dream_parts(store)
    await DreamLimitStore(store.db).update(
        store.me.tenant, ALL_PROJECTS, {"idle_minutes": 0.001}, DEFAULT_THRESHOLDS
    )
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(connect(nats_url, "witness"))
        await bus.wait_connected(30)
        for n in range(SCOPES):
            scope = f"project/p{n}"
            session, _ = await SessionStore(store.db).start(
                store.me, new_id(), scope, {"agent": "ann"}
            )
            await _say(store, parts, session, DreamThresholds(), TALK.format(f"queues{n}"))
        # One more wakes a worker that tends the memories of a tenant.
        admin_rows(
            store.admin_url, f"update tenant set maintained_at = now() - interval '1 d' where {ME}"
        )
        for _ in range(2):
            service = await stack.enter_async_context(ingest_app.open_service(settings))
            await stack.enter_async_context(start_service(service, settings))

        async def asked() -> bool:
            return await _queue(store, bus) == (SCOPES, SCOPES + 1, 0)

        await eventually(asked)
        worker = await stack.enter_async_context(dream_app.open_service(settings))
        await stack.enter_async_context(start_service(worker, settings))

        async def done() -> bool:
            tended = f"select maintained_at > now() - interval '1 h' from tenant where {ME}"
            return await _queue(store, bus) == (0, 0, 0) and bool(
                admin_rows(store.admin_url, tended)[0][0]
            )

        await eventually(done)
    runs = admin_rows(store.admin_url, "select scope, status, reason, turns from dream_run")
    # Tending is noted too, where memories were there before it came to look at them.
    digests = [run for run in runs if run != TENDED]
    assert sorted(digests) == sorted((f"project/p{n}", "done", "idle", 1) for n in range(SCOPES))
    assert len(runs) - len(digests) <= 1


async def _queue(store: Store, bus: MessageBus) -> tuple[int, int, int]:
    """Jobs, tickets that wait or are in work, events not yet on the bus."""
    counted = "select (select count(*) from dream_job), (select count(*) from outbox)"
    [(jobs, outbox)] = admin_rows(store.admin_url, counted)
    return jobs, await bus.lag(DREAM_WORKERS), outbox

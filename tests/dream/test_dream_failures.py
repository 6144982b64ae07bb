"""Dreams that are killed, poisoned, stopped or repeated lose and duplicate nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from reverie.bus.dead_letters import list_dead_letters, replay_dead_letters
from reverie.bus.interface import MessageBus
from reverie.bus.nats_bus import connect
from reverie.bus.streams import DREAM_WORKERS, ensure_streams
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.store.sessions.dream_queue import DreamLease, DreamQueue
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.run_dream import run_dream
from reverie_services.dream.digest.worker import DreamWorker, handle_ticket
from reverie_services.dream.extractor import Extraction, RuleExtractor
from tests.dream.test_dream_worker import HOUR, dream_parts
from tests.support.stack import eventually
from tests.support.store_setup import Store, add_tenants, admin_rows

FACTS = ("retries", "timeouts", "caches")
EXPIRE = "update dream_job set lease_until = now() - interval '1 s' where lease_until is not null"
KEPT = """
select m.id, m.content, m.version, m.confidence, m.status, m.confirmed,
       array(select t.turn from memory_turn t where t.memory = m.id order by 1),
       (select sum(s.times) from session_utterance s where s.memory = m.id)
from memory m order by m.id
"""


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[MessageBus]:
    await ensure_streams(nats_url)
    async with connect(nats_url, "dream") as connected:
        assert await connected.wait_connected(30)
        yield connected


async def _tell(
    store: Store, parts: DigestDependencies, *facts: str, scope: str = "global"
) -> None:
    """Ended sessions with something worth keeping in each, and a request."""
    for fact in facts:
        session, _ = await SessionStore(store.db).start(store.me, new_id(), scope, {"agent": "ann"})
        said = (
            ("user", f"We decided that {fact} are counted in src/{fact}/main.py, never elsewhere."),
            ("assistant", f"The root cause: {fact} were counted twice in src/{fact}/main.py."),
        )
        turns = [TurnToAppend(new_id(), role, text, text) for role, text in said]
        await SessionStore(store.db).append(store.me, session, turns)
        await SessionStore(store.db).end(store.me, session, None)
    await parts.dreams.request(store.me.tenant, "one", scope, "session end", {})


class Killed(BaseException):
    """As by kill -9: nothing that follows is run."""


class Mortal(DreamQueue):
    """The store of a worker that dies at its `step`th call, before or after it takes effect."""

    def __init__(self, store: Store, step: int, after: bool) -> None:
        super().__init__(store.db)
        self._left, self._after = step, after
        for name, _ in inspect.getmembers(DreamQueue, inspect.iscoroutinefunction):
            setattr(self, name, self._dying(getattr(self, name), name))

    def _dying(self, method: Any, name: str) -> Any:
        async def call(*args: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Killed(name)
            done = await method(*args, **more)
            if self._left == 0:
                raise Killed(name)
            return done

        return call


async def _die(store: Store, parts: DigestDependencies, step: int, after: bool) -> bool:
    """Whether a worker dies at that step, rather than come to the end."""
    mortal = replace(parts, dreams=Mortal(store, step, after))
    try:
        while lease := await mortal.dreams.claim("mortal", HOUR):
            await run_dream(mortal, lease)
    except Killed:
        return True
    return False


async def test_a_worker_killed_at_any_step_is_replaced_by_one_that_finishes(store: Store) -> None:
    parts = replace(dream_parts(store))
    worker = DreamWorker(replace(parts, settings=replace(parts.settings, max_attempts=100)))
    deaths = 0
    for step in range(1, 100):
        scope = f"project/p{step}"
        await _tell(store, parts, *FACTS[:2], scope=scope)
        died = await _die(store, parts, step, after=step % 2 == 0)
        deaths += died
        admin_rows(store.admin_url, EXPIRE)
        await worker.run_due_dreams()
        if not died:
            break
    assert deaths > 10
    _all_once(store, scopes=deaths + 1)


def _all_once(store: Store, scopes: int) -> None:
    look = store.admin_url
    assert admin_rows(look, "select count(*) from dream_job") == [(0,)]
    assert admin_rows(look, "select count(*) from turn where run is null") == [(0,)]
    assert admin_rows(look, "select count(*) from session where pending <> 0") == [(0,)]
    counted = "select sum(r.turns), (select count(*) from turn) from dream_run r"
    [(of_runs, turns)] = admin_rows(look, counted)
    assert of_runs == turns == scopes * 4
    twice = "select content from memory where status = 'active' group by scope, content"
    assert admin_rows(look, f"{twice} having count(*) > 1") == []
    per_scope = "select count(*) from memory where status = 'active' group by scope"
    assert len({n for (n,) in admin_rows(look, per_scope)}) == 1
    assert admin_rows(look, "select count(*) from summary") == [(scopes,)]
    orphans = "select count(*) from dream_decision d where not exists (select from dream_run r"
    assert admin_rows(look, f"{orphans} where r.id = d.run)") == [(0,)]


async def test_repeating_a_dream_changes_nothing(store: Store) -> None:
    parts = dream_parts(store)
    worker = DreamWorker(parts)
    await _tell(store, parts, *FACTS)
    await worker.run_due_dreams()
    before = admin_rows(store.admin_url, KEPT)
    summary = admin_rows(store.admin_url, "select content, version from summary")
    assert before
    admin_rows(store.admin_url, "update turn set run = null")
    admin_rows(store.admin_url, "update session set pending = turns, pending_chars = 1")
    await parts.dreams.request(store.me.tenant, "one", "global", "asked", {})
    await worker.run_due_dreams()
    assert admin_rows(store.admin_url, KEPT) == before
    assert admin_rows(store.admin_url, "select content, version from summary") == summary
    [last, _] = await parts.dream_runs.list_runs(store.me, None, None, 10)
    assert (last.turns, last.created, last.reinforced, last.superseded) == (6, 0, 0, 0)
    assert set(last.outcomes) == {"known"}


class _Poisoned:
    """Cannot bear what one session says."""

    async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
        if "timeouts" in topic.turns[0].content:
            raise ValueError("private words")
        return await RuleExtractor().extract(topic, lease)


async def test_a_poison_dream_becomes_a_dead_letter_with_its_reason_and_the_rest_continues(
    store: Store, bus: MessageBus
) -> None:
    parts = dream_parts(store)
    quick = replace(parts.settings, retry_pause=0.0, poll_interval=0.01)
    parts = replace(
        parts,
        publisher=replace(parts.publisher, bus=bus),
        settings=quick,
        extractor=_Poisoned(),
    )
    await _tell(store, parts, *FACTS)
    await _tell(store, parts, "queues", scope="project/shop")
    await DreamWorker(parts).run_due_dreams()
    left = "select count(*) from turn where run is null"
    assert admin_rows(store.admin_url, left) == [(2,)]
    assert [one.scope for one in await parts.dream_runs.list_pending(store.me, None, None, 9)] == [
        "global"
    ]
    [dead] = await list_dead_letters(parts.publisher.bus)
    assert dead.reason.startswith("ValueError in session ")
    assert "private" not in dead.reason
    assert (dead.origin.consumer, dead.deliveries) == (DREAM_WORKERS.name, 3)
    [parked] = await parts.dream_runs.list_pending(store.me, "global", None, 9)
    assert (parked.state, parked.error) == ("parked", dead.reason)
    assert await parts.dreams.list_due_scopes(parts.settings.limits) == []
    worker = DreamWorker(replace(parts, extractor=RuleExtractor()))

    async def _heal() -> None:
        async for delivery in parts.publisher.bus.deliveries(DREAM_WORKERS):
            await handle_ticket(worker, delivery.message)
            await delivery.ack()

    healing = asyncio.create_task(_heal())
    assert await replay_dead_letters(parts.publisher.bus) == 1

    async def _healed() -> bool:
        return admin_rows(store.admin_url, left) == [(0,)]

    await eventually(_healed)
    healing.cancel()
    with suppress(asyncio.CancelledError):
        await healing


class _CutOff(DreamQueue):
    """The store of a worker that Postgres does not answer for some calls."""

    def __init__(self, store: Store, times: int) -> None:
        super().__init__(store.db)
        self._left = times

    async def list_turns(self, *args: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left >= 0:
            raise Unavailable("Postgres", "try again shortly")
        return await super().list_turns(*args, **more)


async def test_an_outage_parks_no_scope_however_many_dreams_it_interrupts(
    store: Store, bus: MessageBus
) -> None:
    parts = dream_parts(store)
    quick = replace(parts.settings, retry_pause=0.0)
    parts = replace(
        parts,
        publisher=replace(parts.publisher, bus=bus),
        settings=quick,
        dreams=_CutOff(store, quick.max_attempts + 2),
    )
    await _tell(store, parts, *FACTS)
    await DreamWorker(parts).run_due_dreams()
    assert await list_dead_letters(parts.publisher.bus) == []
    assert admin_rows(store.admin_url, "select count(*) from turn where run is null") == [(0,)]
    runs = await parts.dream_runs.list_runs(store.me, None, None, 10)
    assert [run.status for run in runs] == ["done"] + ["failed"] * (quick.max_attempts + 2)


async def test_a_stopping_worker_releases_its_scope_at_once(store: Store) -> None:
    parts = dream_parts(store)
    begun = asyncio.Event()

    class Slow:
        async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
            begun.set()
            await asyncio.sleep(HOUR)
            return await RuleExtractor().extract(topic, lease)

    await _tell(store, parts, FACTS[0])
    stopped = asyncio.create_task(DreamWorker(replace(parts, extractor=Slow())).run_due_dreams())
    await begun.wait()
    stopped.cancel()
    with suppress(asyncio.CancelledError):
        await stopped
    [waits] = await parts.dream_runs.list_pending(store.me, None, None, 9)
    assert (waits.state, waits.attempts) == ("queued", 0)
    lease = await parts.dreams.claim("next", HOUR)
    assert lease is not None
    assert (await run_dream(parts, lease), lease.attempts) == ("done", 1)
    statuses = [run.status for run in await parts.dream_runs.list_runs(store.me, None, None, 9)]
    assert statuses == ["done", "lost"]


async def test_ten_thousand_scopes_of_one_tenant_do_not_delay_another(store: Store) -> None:
    dreams = DreamQueue(store.db)
    [small] = add_tenants(store.admin_url, "small")
    admin_rows(
        store.admin_url,
        "insert into dream_job (tenant, scope, reason, due)"
        " select %s, 'project/p' || n, 'idle', now() - interval '1 hour'"
        " from generate_series(1, 10000) n",
        store.me.tenant,
    )
    assert (await dreams.claim("worker", HOUR)) is not None
    await dreams.request(small, "small", "global", "asked", {})
    leases = [await dreams.claim("worker", HOUR) for _ in range(2)]
    assert small in [lease.tenant for lease in leases if lease]

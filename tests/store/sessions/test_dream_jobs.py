"""Dream jobs: claims, fairness, leases and epochs."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from itertools import chain
from uuid import UUID

import pytest

from reverie.domain.context.scope_summary import ComposedSummary
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import Memory, NewMemory
from reverie.store.sessions.dream_queue import START_ID, DreamLease, DreamQueue
from reverie.store.sessions.dream_runs import DreamRunStore
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie.store.sessions.summaries import SummaryStore
from tests.support.store_setup import Store, add_tenants, admin_rows, new

HOUR = 3600.0


@pytest.fixture
def dreams(store: Store) -> DreamQueue:
    return DreamQueue(store.db)


async def _request(store: Store, scope: str = "global") -> str:
    state, _ = await DreamQueue(store.db).request(store.me.tenant, "one", scope, "test", {})
    return state


async def _claim(dreams: DreamQueue, seconds: float = HOUR) -> DreamLease:
    lease = await dreams.claim("worker", seconds)
    assert lease is not None
    return lease


async def _start(dreams: DreamQueue, lease: DreamLease) -> UUID:
    run = new_id()
    assert await dreams.start(lease, run, "worker")
    return run


async def _begin(store: Store, dreams: DreamQueue) -> tuple[DreamLease, UUID]:
    """A job that was asked for and claimed, and its run."""
    await _request(store)
    lease = await _claim(dreams)
    return lease, await _start(dreams, lease)


async def _session(store: Store, count: int = 3) -> tuple[UUID, list[UUID]]:
    """A session of the scope `global` with turns that wait."""
    sessions = SessionStore(store.db)
    session, _ = await sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    turns = [TurnToAppend(new_id(), "user", f"turn {n}", f"turn {n}") for n in range(count)]
    await sessions.append(store.me, session, turns)
    return session, [turn.id for turn in turns]


def _expire(store: Store) -> None:
    admin_rows(
        store.admin_url,
        "update dream_job set lease_until = now() - interval '1 s' where lease_until is not null",
    )


def _job(store: Store, columns: str) -> tuple[object, ...]:
    [row] = admin_rows(store.admin_url, f"select {columns} from dream_job")
    return row


async def test_eight_claimers_never_share_a_job(store: Store, dreams: DreamQueue) -> None:
    for n in range(24):
        await _request(store, f"project/p{n}")

    async def work() -> list[str]:
        taken = []
        while lease := await dreams.claim("worker", HOUR):
            taken.append(lease.scope)
        return taken

    taken = await asyncio.gather(*(work() for _ in range(8)))
    assert Counter(chain.from_iterable(taken)) == {f"project/p{n}": 1 for n in range(24)}


async def test_one_busy_tenant_does_not_delay_twenty_others(
    store: Store, dreams: DreamQueue
) -> None:
    """Eight claim at once."""
    for n in range(60):
        await _request(store, f"project/p{n}")
    small = add_tenants(store.admin_url, *(f"small{n}" for n in range(20)))
    for n, tenant in enumerate(small):
        await dreams.request(tenant, f"small{n}", "global", "test", {})
    served: list[int] = []
    for _ in range(7):
        leases = await asyncio.gather(*(dreams.claim("worker", HOUR) for _ in range(8)))
        served += [lease.tenant for lease in leases if lease]
    assert set(small) <= set(served)


async def test_requests_for_one_scope_are_one_job(store: Store, dreams: DreamQueue) -> None:
    states = await asyncio.gather(*(_request(store) for _ in range(10)))
    assert set(states) == {"queued"}
    await _claim(dreams)
    assert await dreams.claim("worker", HOUR) is None


async def test_a_job_whose_worker_died_is_claimed_by_the_next(
    store: Store, dreams: DreamQueue
) -> None:
    await _request(store)
    first = await _claim(dreams)
    _expire(store)
    second = await _claim(dreams)
    assert second.scope == first.scope
    assert second.epoch > first.epoch
    assert second.attempts == 2


async def test_a_worker_that_lost_its_lease_changes_nothing(
    store: Store, dreams: DreamQueue
) -> None:
    session, turns = await _session(store)
    old, run = await _begin(store, dreams)
    _expire(store)
    held = await _claim(dreams)
    before = _state(store)
    assert await dreams.commit(old, run, session, [new("late")], turns, {}) is None
    assert await _sum_up(store, old, "late", run) is False
    assert await dreams.renew(old, HOUR) is False
    assert await dreams.start(old, new_id(), "worker") is False
    state, _ = await dreams.finish(old, run, {})
    assert state == "lost"
    assert (await dreams.fail(old, run, "late", 1, 1))[0] == "lost"
    assert _state(store) == before
    assert await dreams.renew(held, HOUR) is True


async def _sum_up(store: Store, lease: DreamLease, text: str, run: UUID | None = None) -> bool:
    told: ComposedSummary[Memory] = ComposedSummary(text, (), is_complete=True)
    return await SummaryStore(store.db).put(
        lease, run or new_id(), text, 1, told, datetime(2026, 1, 1, tzinfo=UTC)
    )


def _state(store: Store) -> list[object]:
    """All that a dream may write."""
    tables = ("memory", "summary", "summary_version", "dream_job", "dream_run", "session", "turn")
    every = (*tables, "outbox")
    return [admin_rows(store.admin_url, f"select t::text from {t} t order by 1") for t in every]


async def test_an_unfinished_run_is_marked_as_lost_by_the_next(
    store: Store, dreams: DreamQueue
) -> None:
    await _begin(store, dreams)
    _expire(store)
    await _start(dreams, await _claim(dreams))
    runs = await DreamRunStore(store.db).list_runs(store.me, None, None, 10)
    assert [run.status for run in runs] == ["running", "lost"]
    assert runs[1].ended is not None


async def test_a_request_during_a_run_triggers_another_run(
    store: Store, dreams: DreamQueue
) -> None:
    lease, run = await _begin(store, dreams)
    assert await _request(store) == "running"
    state, [told, ticket] = await dreams.finish(lease, run, {})
    assert state == "again"
    assert told.subject == "memory.one.digested"
    stored = admin_rows(store.admin_url, "select 1 from outbox where id = %s", ticket.id)
    assert stored == [(1,)]
    again = await _claim(dreams)
    run = await _start(dreams, again)
    assert (await dreams.finish(again, run, {}))[0] == "done"
    assert await dreams.claim("worker", HOUR) is None


async def test_a_request_after_an_expired_lease_is_not_lost_when_the_slow_worker_ends(
    store: Store, dreams: DreamQueue
) -> None:
    lease, run = await _begin(store, dreams)
    _expire(store)
    await _request(store)
    assert (await dreams.finish(lease, run, {}))[0] == "again"
    assert await dreams.claim("worker", HOUR) is not None


async def test_races_of_finish_and_request_lose_no_request(
    store: Store, dreams: DreamQueue
) -> None:
    for n in range(15):
        scope = f"project/p{n}"
        await _request(store, scope)
        lease = await _claim(dreams)
        run = await _start(dreams, lease)
        (state, _), asked = await asyncio.gather(
            dreams.finish(lease, run, {}), _request(store, scope)
        )
        assert (state, asked) in {("again", "running"), ("done", "queued"), ("again", "queued")}
        again = await _claim(dreams)
        assert again.scope == scope
        run = await _start(dreams, again)
        assert (await dreams.finish(again, run, {}))[0] == "done"
    assert admin_rows(store.admin_url, "select count(*) from dream_job") == [(0,)]


async def test_an_epoch_is_never_reused_even_after_its_job_is_gone(
    store: Store, dreams: DreamQueue
) -> None:
    epochs = []
    for _ in range(3):
        lease, run = await _begin(store, dreams)
        epochs.append(lease.epoch)
        assert (await dreams.finish(lease, run, {}))[0] == "done"
    assert len(set(epochs)) == 3
    await _request(store)
    stale = DreamLease(store.me.tenant, "one", "global", epochs[0], 1)
    await _claim(dreams)
    assert await dreams.renew(stale, HOUR) is False


@pytest.mark.parametrize("end", ["again", "retry"])
async def test_a_released_job_cannot_be_resumed_by_a_late_renewal(
    store: Store, dreams: DreamQueue, end: str
) -> None:
    session, turns = await _session(store)
    lease, run = await _begin(store, dreams)
    await _request(store)
    if end == "again":
        assert (await dreams.finish(lease, run, {}))[0] == "again"
    else:
        assert (await dreams.fail(lease, run, "Error", 3, 0))[0] == "retry"
    assert await dreams.renew(lease, HOUR) is False
    assert await dreams.commit(lease, run, session, [new("late")], turns, {}) is None
    assert await dreams.claim("worker", HOUR) is not None


async def test_a_failed_job_waits_longer_each_time_and_is_finally_parked(
    store: Store, dreams: DreamQueue
) -> None:
    await _request(store)
    pauses = []
    for attempt in (1, 2):
        lease = await _claim(dreams)
        assert lease.attempts == attempt
        run = await _start(dreams, lease)
        assert (await dreams.fail(lease, run, "ValueError", 3, 60))[0] == "retry"
        assert await dreams.claim("worker", HOUR) is None
        seconds = admin_rows(
            store.admin_url, "select extract(epoch from due - now())::int from dream_job"
        )
        pauses.append(seconds[0][0])
        admin_rows(store.admin_url, "update dream_job set due = now()")
    assert pauses == [pytest.approx(60, abs=10), pytest.approx(120, abs=10)]
    lease = await _claim(dreams)
    run = await _start(dreams, lease)
    assert (await dreams.fail(lease, run, "ValueError", 3, 0))[0] == "parked"
    assert _job(store, "parked, lease_until") == ("ValueError", None)
    assert await dreams.claim("worker", HOUR) is None
    assert (await dreams.load_queue_lengths()).parked == 1
    assert await dreams.list_overdue(0) == []
    [last, *_] = await DreamRunStore(store.db).list_runs(store.me, None, None, 10)
    assert (last.status, last.error) == ("failed", "ValueError")


async def test_a_parked_job_wakes_on_request_with_all_its_attempts(
    store: Store, dreams: DreamQueue
) -> None:
    await _request(store)
    lease = await _claim(dreams)
    assert (await dreams.fail(lease, new_id(), "ValueError", 1, HOUR))[0] == "parked"
    assert await _request(store) == "queued"
    lease = await _claim(dreams)
    assert lease.attempts == 1


async def test_a_commit_marks_its_turns_once_and_counts_the_pending_ones(
    store: Store, dreams: DreamQueue
) -> None:
    session, turns = await _session(store, 5)
    lease, run = await _begin(store, dreams)
    assert [one.id for one in await dreams.claim_sessions(lease, START_ID)] == [session]
    waiting = await dreams.list_turns(lease, session, -1, 100)
    assert [turn.id for turn in waiting] == turns
    found = await dreams.commit(
        lease, run, session, [new("learned", turns=(turns[0],))], turns[:3], {}
    )
    assert found is not None
    assert [one["outcome"] for one in found] == ["created"]
    assert [turn.id for turn in await dreams.list_turns(lease, session, -1, 100)] == turns[3:]
    assert _pending(store) == (2, len("turn 3turn 4"))
    await dreams.commit(lease, run, session, [new("learned", turns=(turns[1],))], turns[:3], {})
    assert _pending(store) == (2, len("turn 3turn 4"))
    await dreams.commit(lease, run, session, [], turns, {})
    assert _pending(store) == (0, 0)
    assert await dreams.claim_sessions(lease, START_ID) == []
    [row] = await DreamRunStore(store.db).list_runs(store.me, None, None, 1)
    assert (row.turns, row.created, row.reinforced) == (5, 1, 1)
    assert row.sessions == [session]


def _pending(store: Store) -> tuple[object, ...]:
    [row] = admin_rows(store.admin_url, "select pending, pending_chars from session")
    return row


async def test_turns_appended_during_a_commit_stay_pending(
    store: Store, dreams: DreamQueue
) -> None:
    session, turns = await _session(store, 3)
    lease, run = await _begin(store, dreams)
    late = [TurnToAppend(new_id(), "user", "late", "late")]
    await asyncio.gather(
        dreams.commit(lease, run, session, [], turns, {}),
        SessionStore(store.db).append(store.me, session, late),
    )
    assert _pending(store) == (1, 4)
    assert [turn.id for turn in await dreams.list_turns(lease, session, -1, 9)] == [late[0].id]


async def test_a_summary_gets_a_new_version_only_when_its_text_changes(
    store: Store, dreams: DreamQueue
) -> None:
    await _request(store)
    lease = await _claim(dreams)
    for text in ("first", "first", "second"):
        assert await _sum_up(store, lease, text)
    summaries = SummaryStore(store.db)
    [summary] = await summaries.page(store.me, None, None, 9)
    assert (summary.content, summary.version) == ("second", 2)
    versions = await summaries.list_versions(store.me, "global", None, 9)
    assert [one.version for one in versions] == [2, 1]
    assert await summaries.page(store.other, None, None, 9) == []
    assert await summaries.list_versions(store.other, "global", None, 9) == []


async def test_dreams_and_writers_of_the_same_keys_all_succeed(
    store: Store, dreams: DreamQueue
) -> None:
    session, turns = await _session(store, 1)
    lease, run = await _begin(store, dreams)
    keys = [f"k{n}" for n in range(8)]

    def batch(n: int, order: list[str]) -> list[NewMemory]:
        return [
            new(f"{n} of {key}", key=key, supersede_reason="newer", turns=(turns[0],))
            for key in order
        ]

    for n in range(6):
        results = await asyncio.gather(
            dreams.commit(lease, run, session, batch(n, keys), turns, {}),
            store.memories.remember(store.me, batch(n + 50, keys[::-1]), {}),
        )
        assert all(results)
    active = admin_rows(store.admin_url, "select count(*) from memory where status = 'active'")
    assert active == [(8,)]

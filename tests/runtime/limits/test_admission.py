"""The concurrency limit: queueing, refusal under overload, and how the limit adapts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress

import pytest
from prometheus_client import CollectorRegistry

from reverie.domain.core.errors import Overloaded
from reverie.runtime.limits.admission import (
    INITIAL_LIMIT,
    MIN_LIMIT,
    AdmissionController,
    AdmissionLimits,
    AdmissionMetrics,
)
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import Reply, running_stack


def _door(**bounds: float) -> AdmissionController:
    return AdmissionController(
        AdmissionLimits(**bounds),  # type: ignore[arg-type]
        AdmissionMetrics(CollectorRegistry()),
        "self",
    )


class Machine:
    """Work that takes as long as all that is under way, one after another."""

    def __init__(self, door: AdmissionController, seconds: float) -> None:
        self.door, self.seconds = door, seconds
        self.done, self.refused, self.most, self._now = 0, 0, 0, 0
        self._one = asyncio.Lock()

    async def request(self, call: str = "GET /x") -> None:
        try:
            async with self.door.acquire_slot(call):
                self._now += 1
                self.most = max(self.most, self._now)
                # Two halves, so that those under way take turns.
                for _ in range(2):
                    async with self._one:
                        await asyncio.sleep(self.seconds / 2)
                self._now -= 1
                self.done += 1
        except Overloaded:
            self.refused += 1


async def test_a_burst_waits_and_is_answered() -> None:
    machine = Machine(_door(patience=30.0, clears=30.0), 0.001)
    await asyncio.gather(*(machine.request() for _ in range(100)))
    assert (machine.done, machine.refused) == (100, 0)
    assert machine.most < 100


async def test_more_than_may_wait_is_refused_at_once_before_anything_is_read() -> None:
    door = _door(most=1, queue=2)
    machine = Machine(door, 0.05)
    waiting = [asyncio.create_task(machine.request()) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="1 requests are under way and 2 wait"):
        door.check()
    await asyncio.gather(machine.request(), *waiting)
    assert (machine.done, machine.refused) == (3, 1)


async def test_who_waits_longer_than_patience_lasts_goes_and_leaves_no_hole() -> None:
    door = _door(most=1, patience=0.01)
    release = asyncio.Event()

    async def hold() -> None:
        async with door.acquire_slot("hold"):
            await release.wait()

    held = asyncio.create_task(hold())
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        async with door.acquire_slot("late"):
            pass
    gone = asyncio.create_task(hold())
    await asyncio.sleep(0)
    gone.cancel()
    release.set()
    await held
    async with door.acquire_slot("next"):
        pass


async def test_where_the_queue_does_not_clear_the_late_go() -> None:
    door = _door(most=1, room=4, clears=0.02, patience=30.0)
    order: list[int] = []

    async def request(number: int) -> None:
        try:
            async with door.acquire_slot("x"):
                order.append(number)
                await asyncio.sleep(0.01)
        except Overloaded:
            order.append(-number)

    tasks = []
    for number in range(1, 31):
        tasks.append(asyncio.create_task(request(number)))
        await asyncio.sleep(0.003)
    await asyncio.gather(*tasks)
    assert 0 < sum(number > 0 for number in order) < 25
    assert {abs(number) for number in order} == set(range(1, 31))


async def test_few_that_wait_for_slow_answers_are_no_queue_that_grows() -> None:
    machine = Machine(_door(most=1, room=4, clears=0.01, patience=30.0), 0.05)
    await asyncio.gather(*(machine.request() for _ in range(5)))
    assert (machine.done, machine.refused) == (5, 0)


async def test_fewer_are_let_in_where_they_slow_each_other_down() -> None:
    door = _door(clears=30.0, patience=30.0)
    machine = Machine(door, 0.004)
    for _ in range(10):
        await machine.request()

    async def keep() -> None:
        for _ in range(20):
            await machine.request()

    await asyncio.gather(*(keep() for _ in range(12)))
    assert door._limit < INITIAL_LIMIT
    assert machine.refused == 0


async def test_what_waits_for_something_that_is_away_counts_for_no_crowd() -> None:
    door = _door()
    for _ in range(10):
        door._measure("x", 0.01, beside=0)
    door._window.since -= 1.0
    for _ in range(17):
        door._measure("x", 5.0, beside=8)
    assert door._limit >= INITIAL_LIMIT


@pytest.mark.parametrize("room", [30, 0])
async def test_more_are_let_in_where_they_do_not_slow_each_other(room: int) -> None:
    door = _door(clears=30.0 if room else 0.0, room=room, patience=30.0)
    for _ in range(10):
        door._measure("wait", 0.005, beside=0)
    async with AsyncExitStack() as places:
        for _ in range(INITIAL_LIMIT):
            await places.enter_async_context(door.acquire_slot("wait"))
        # One more asks: it waits, or is refused where the queue does not clear.
        waiting = [asyncio.create_task(_ask(door)) for _ in range(3)]
        await asyncio.sleep(0)
        door._window.since -= 1.0
        for _ in range(17):
            door._measure("wait", 0.005, beside=INITIAL_LIMIT)
        assert door._limit == INITIAL_LIMIT + 1
        for one in waiting:
            one.cancel()


async def _ask(door: AdmissionController) -> None:
    with suppress(Overloaded):
        async with door.acquire_slot("wait"):
            pass


def _limit_after(door: AdmissionController, seconds: float, beside: int) -> int:
    """The limit once many have taken so long beside so many."""
    for _ in range(8):
        door._window.since -= 1.0
        door._window.full = True
        for _ in range(16):
            door._measure("x", seconds, beside)
    return int(door._limit)


async def test_two_that_slow_each_other_down_are_worked_on_one_by_one_while_too_many_come() -> None:
    door = _door()
    for _ in range(10):
        door._measure("x", 0.01, beside=0)

    assert _limit_after(door, 0.02, beside=2) == MIN_LIMIT, "who has time to wait is let in by twos"
    door._overloaded_until = time.monotonic() + 60.0
    assert _limit_after(door, 0.02, beside=2) == 1
    assert _limit_after(door, 0.009, beside=1) == 1, "that one alone is fast says nothing of two"
    assert _limit_after(door, 5.0, beside=1) > MIN_LIMIT, "what is away is waited for by many"
    assert _limit_after(door, 0.02, beside=2) == 1
    door._overloaded_until = time.monotonic() - 60.0
    door.check()
    assert int(door._limit) == MIN_LIMIT


async def test_while_too_many_come_a_noisy_minute_before_lets_no_two_slow_each_other_down() -> None:
    door = _door()
    for seconds in [0.01] * 8 + [0.018] * 2:
        door._measure("x", seconds, beside=0)
    assert _limit_after(door, 0.0185, beside=2) > 1
    door._overloaded_until = time.monotonic() + 60.0
    assert _limit_after(door, 0.0185, beside=2) == 1


async def test_one_that_hung_alone_lets_no_crowd_in_and_a_crowd_teaches_nothing() -> None:
    door = _door()
    for seconds in [0.01] * 30 + [3.0, 0.9] + [0.01] * 5:
        door._measure("x", seconds, beside=0)
    for _ in range(100):
        door._measure("x", 0.08, beside=8)
    door._window.since -= 1.0
    door._measure("x", 0.08, beside=8)
    assert door._limit < INITIAL_LIMIT
    assert door._baselines["x"].slow == pytest.approx(0.011)


async def test_where_nobody_may_wait_those_that_find_a_place_are_let_in() -> None:
    door = _door(most=1, queue=0)
    async with door.acquire_slot("x"):
        with pytest.raises(Overloaded):
            door.check()
    door.check()


async def test_where_the_queue_does_not_clear_nobody_waits_until_more_are_let_in_than_refused() -> (
    None
):
    door = _door(most=4, room=1, clears=0.0, patience=30.0)
    release = asyncio.Event()

    async def hold() -> None:
        async with door.acquire_slot("x"):
            await release.wait()

    door._baselines.setdefault("x", door._overall_baseline).learn(10.0)
    held = [asyncio.create_task(hold()) for _ in range(6)]
    await asyncio.sleep(0.001)
    with pytest.raises(Overloaded, match="4 requests are under way and 2 wait"):
        door.check()
    release.set()
    await asyncio.gather(*held)
    door.check()
    for ends_with_more_refused in (True, False):
        for _ in range(2):
            async with AsyncExitStack() as places:
                for _ in range(4):
                    await places.enter_async_context(door.acquire_slot("x"))
                for _ in range(9 if ends_with_more_refused else 1):
                    with pytest.raises(Overloaded, match="4 requests are under way and 0 wait"):
                        door.check()
        door._overloaded_until = time.monotonic()
    # Now there is room for one to wait again.
    async with AsyncExitStack() as places:
        for _ in range(4):
            await places.enter_async_context(door.acquire_slot("x"))
        door.check()


TIGHT = {
    "max_concurrent_requests": 2,
    "request_queue": 6,
    "request_queue_tolerance": 2,
    "request_queue_timeout": 30.0,
    "request_overload_after": 0.05,
}


async def test_what_is_let_in_is_done_and_the_rest_is_told_when_to_come_again(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), **TIGHT) as stack:

        async def remember(number: int) -> Reply:
            said = {"content": f"Worker {number} keeps the key of room {number * 7}"}
            return await stack.call("POST", "/v1/remember", said)

        async def recall(number: int) -> Reply:
            return await stack.call("POST", "/v1/recall", {"query": f"room {number}"})

        written = await asyncio.gather(*(remember(n) for n in range(60)))
        asked = await asyncio.gather(*(recall(n) for n in range(60)))
        for answers, good in ((written, 201), (asked, 200)):
            told = Counter(answer.status for answer in answers)
            assert set(told) == {good, 503}, told
            for answer in answers:
                if answer.status == 503:
                    assert answer.body["code"] == "unavailable"
                    assert "are under way" in answer.body["detail"]
                    assert 1 <= int(answer.headers["Retry-After"]) <= 2
        for answer in written:
            if answer.status == 201:
                found = await stack.get(f"/v1/memories/{answer.body['id']}")
                assert found["content"].startswith("Worker")
        # Whoever asks how it goes is always answered, and it goes on as before.
        metrics = await stack.http.get(f"{stack.url}/metrics")
        refused = [line for line in (await metrics.text()).splitlines() if "refused_total" in line]
        assert any('of="ingest"' in line and not line.endswith(" 0.0") for line in refused)
        assert (await recall(1)).status == 200

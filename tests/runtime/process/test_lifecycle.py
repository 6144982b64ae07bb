"""Background tasks, health checks, the key cache and metric readings."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from reverie.domain.access.principals import hash_key
from reverie.domain.core.errors import InvalidInput, Unavailable
from reverie.runtime.auth.authentication import CachedKeyFinder
from reverie.runtime.http.health import run_checks
from reverie.runtime.http.validation import parse_value
from reverie.runtime.observability.metrics import PolledGauge, PolledGauges, render_metrics
from reverie.runtime.process.lifecycle import run_in_background, supervise
from tests.runtime.sample_service import Note
from tests.support.in_memory_runtime import InMemoryKeys, build_principal


async def test_a_crashed_task_is_restarted() -> None:
    runs: list[int] = []

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) < 4:
            raise RuntimeError

    await supervise(work, initial_delay=0.001)
    assert runs == [0, 1, 2, 3]


async def test_a_crash_of_one_task_leaves_the_others_which_may_clean_up_at_the_end() -> None:
    ended: list[str] = []
    crashed, started = asyncio.Event(), asyncio.Event()

    async def crash() -> None:
        crashed.set()
        raise RuntimeError

    async def work() -> None:
        await crashed.wait()
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned")

    async with run_in_background([crash, work]):
        await started.wait()
    assert ended == ["cleaned"]


async def test_checks_run_concurrently_each_with_its_deadline() -> None:
    met = asyncio.Barrier(2)

    async def meets() -> None:
        await met.wait()

    async def hangs() -> None:
        await asyncio.Event().wait()

    results = await run_checks({"a": meets, "b": meets, "c": hangs}, seconds=0.2)
    assert (results["a"].ok, results["b"].ok, results["c"].ok) == (True, True, False)


async def test_a_cached_key_is_looked_up_again_after_its_lifetime() -> None:
    keys = InMemoryKeys()
    keys.add("k", build_principal())
    cached = CachedKeyFinder(keys, ttl=0)
    assert await cached.find(hash_key("k")) == build_principal()
    keys.revoke("k")
    assert await cached.find(hash_key("k")) is None


async def test_an_unexpected_error_of_a_key_finder_counts_as_unavailable() -> None:
    class Broken:
        async def find(self, key_hash: bytes) -> None:
            raise OSError("connection refused")

    with pytest.raises(Unavailable, match="key store"):
        await CachedKeyFinder(Broken(), ttl=1).find(b"")


def test_a_part_of_a_body_is_named_by_its_location() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_value(Note, {"text": "a", "inner": {"level": -1}}, "items.3")
    assert caught.value.field == "items.3.inner.level"
    with pytest.raises(InvalidInput) as caught:
        parse_value(Note, {"text": "a\0"}, "items.3")
    assert caught.value.field == "items.3.text"
    assert parse_value(Note, {"text": "a"}, "items.3").text == "a"


async def test_a_gauge_is_read_when_scraped_and_is_nan_on_failure() -> None:
    registry = CollectorRegistry()
    waiting = [1.0]

    async def read() -> float:
        if not waiting:
            raise Unavailable("Postgres", "try again")
        return waiting[0]

    readings = PolledGauges(registry, [PolledGauge("reverie_waiting", "Waiting.", read)])
    for value, told in (([1.0], b"1.0"), ([7.0], b"7.0"), ([], b"NaN")):
        waiting[:] = value
        await readings.refresh()
        assert b"reverie_waiting " + told in render_metrics(registry)[0]

"""Rate limits and daily quotas of keys and tenants, shared by replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reverie.domain.access.principals import NO_LIMITS, Principal, UsageLimits
from reverie.domain.core.errors import QuotaExceeded
from reverie.runtime.limits.rate_limiter import RateLimiter
from tests.support.in_memory_runtime import InMemoryCounts, build_principal

WHO = build_principal()
NOON = 43_200.0


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


async def _refused(rates: RateLimiter, who: Principal = WHO) -> QuotaExceeded | None:
    try:
        await rates.count_request(who)
    except QuotaExceeded as error:
        return error
    return None


async def test_a_bucket_refills_by_the_second_up_to_its_limit() -> None:
    clock = Clock()
    rates = RateLimiter(
        InMemoryCounts(clock), UsageLimits(requests_per_minute=60), NO_LIMITS, clock
    )
    assert [await _refused(rates) for _ in range(60)] == [None] * 60
    refused = await _refused(rates)
    assert refused is not None
    assert refused.retry_after == 1
    assert "60 requests per minute" in str(refused)
    assert await _refused(rates, build_principal(2)) is None
    clock.now += 1.0
    assert await _refused(rates) is None
    assert await _refused(rates) is not None
    clock.now += 1000.0
    left = await rates.count_request(WHO)
    assert left is not None
    assert left.requests == 59


async def test_two_replicas_admit_no_more_than_one_would() -> None:
    clock = Clock()
    counts = InMemoryCounts(clock)
    replicas = [
        RateLimiter(counts, UsageLimits(requests_per_minute=600), NO_LIMITS, clock)
        for _ in range(2)
    ]
    let = [await _refused(replicas[n % 2]) is None for n in range(1500)]
    # What one replica still holds the other cannot give: a portion at most.
    assert 540 <= sum(let) <= 600
    assert counts.calls - let.count(False) < 60, "a busy key asks seldom"


async def test_a_rarely_used_key_takes_nothing_from_the_other_replica() -> None:
    clock = Clock()
    counts = InMemoryCounts(clock)
    few, many = (
        RateLimiter(counts, UsageLimits(requests_per_minute=20), NO_LIMITS, clock) for _ in range(2)
    )
    assert await _refused(few) is None
    assert sum([await _refused(many) is None for _ in range(30)]) == 19


async def test_days_begin_at_midnight_and_the_stricter_of_two_limits_applies() -> None:
    clock = Clock()
    rates = RateLimiter(InMemoryCounts(clock), NO_LIMITS, UsageLimits(memories_per_day=10), clock)
    strict = replace(WHO, limits=UsageLimits(memories_per_day=4), key_id="strict")
    await rates.count_memories(strict, 3)
    with pytest.raises(QuotaExceeded, match="this key has used its 4 memories per day"):
        await rates.count_memories(strict, 2)
    await rates.count_memories(WHO, 7)
    with pytest.raises(QuotaExceeded, match="this tenant has used its 10 memories per day") as told:
        await rates.count_memories(WHO, 1)
    assert told.value.retry_after == pytest.approx(NOON)
    clock.now += NOON
    await rates.count_memories(strict, 4)
    # A tenant's own limit does not lift what the settings say.
    loose = replace(WHO, tenant_limits=UsageLimits(memories_per_day=1000), key_id="loose")
    with pytest.raises(QuotaExceeded):
        await rates.count_memories(loose, 7)


async def test_without_the_counter_store_nothing_is_refused() -> None:
    counts = InMemoryCounts()
    counts.down = True
    rates = RateLimiter(counts, UsageLimits(requests_per_minute=1), NO_LIMITS)
    assert [await _refused(rates) for _ in range(3)] == [None] * 3


async def test_without_limits_nothing_is_counted() -> None:
    counts = InMemoryCounts()
    rates = RateLimiter(counts, NO_LIMITS, NO_LIMITS)
    assert await rates.count_request(WHO) is None
    await rates.count_bytes(WHO, 10**9)
    assert counts.calls == 0

"""A key may send so many requests a minute, and gets them back by the second."""

from __future__ import annotations

from reverie.runtime.rates import Rates


def test_a_bucket_fills_again_by_the_second_and_never_above_its_limit() -> None:
    now = 0.0
    rates = Rates(60, lambda: now)
    assert [rates.take("a")[1] for _ in range(60)] == [None] * 60
    left, refused = rates.take("a")
    assert (left.requests, left.seconds) == (0, 60)
    assert refused is not None
    assert refused.retry_after == 1
    assert rates.take("b")[1] is None
    now = 1.0
    assert rates.take("a")[1] is None
    assert rates.take("a")[1] is not None
    now = 1000.0
    assert rates.take("a")[0].requests == 59

"""Subject filters, retry and dead-letter decisions, and the stream definitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.bus.consumer import DeadLetterVerdict, RedeliveryVerdict, decide_verdict
from reverie.bus.interface import Reject, Retry
from reverie.bus.streams import (
    CONSUMERS,
    DEDUPE_SECONDS,
    DREAM_WORKERS,
    ENGINE_WORKERS,
    INGEST_ENRICH,
    STREAMS,
)
from reverie.domain.core.errors import NotFound, Unavailable

SPEC = replace(INGEST_ENRICH, max_deliver=4, backoff=(1.0, 5.0))
AWAY = Unavailable("Postgres", "away")


def test_every_consumer_reads_an_existing_stream() -> None:
    assert {consumer.stream for consumer in CONSUMERS} <= {stream.name for stream in STREAMS}
    assert len({consumer.name for consumer in CONSUMERS}) == len(CONSUMERS)


def test_every_consumer_leaves_room_for_others_beside_a_slow_one() -> None:
    assert all(consumer.max_ack_pending > 1 for consumer in CONSUMERS)


def test_message_ids_are_remembered_longer_than_a_worker_may_be_silent() -> None:
    assert all(consumer.ack_wait < DEDUPE_SECONDS for consumer in CONSUMERS)
    assert all(stream.max_age > DEDUPE_SECONDS for stream in STREAMS)


@pytest.mark.parametrize(
    ("deliveries", "error", "verdict"),
    [
        (1, Reject("no id"), DeadLetterVerdict("no id")),
        (1, Retry(delay=7.5), RedeliveryVerdict(7.5)),
        (1, AWAY, RedeliveryVerdict(1.0)),
        (2, AWAY, RedeliveryVerdict(5.0)),
        (3, AWAY, RedeliveryVerdict(5.0)),
    ],
)
def test_a_failure_is_rejected_or_waits_longer_each_time(
    deliveries: int, error: Exception, verdict: object
) -> None:
    assert decide_verdict(SPEC, deliveries, error) == verdict


@pytest.mark.parametrize("error", [Retry(), ValueError(), AWAY])
def test_the_last_delivery_is_final_whatever_the_error(error: Exception) -> None:
    assert isinstance(decide_verdict(SPEC, 4, error), DeadLetterVerdict)


def test_an_unlimited_consumer_never_dead_letters_a_failure() -> None:
    assert decide_verdict(replace(SPEC, max_deliver=-1), 1000, ValueError()) == RedeliveryVerdict(
        5.0
    )


def test_what_somebody_waits_for_is_delivered_again_ten_seconds_after_a_kill() -> None:
    assert {spec.ack_wait for spec in (INGEST_ENRICH, DREAM_WORKERS, ENGINE_WORKERS)} == {10.0}


def test_the_reason_quotes_only_the_first_line_of_an_error() -> None:
    verdict = decide_verdict(SPEC, 4, ValueError("duplicate key\nDETAIL: (key)=(a value)"))
    assert verdict == DeadLetterVerdict("delivery 4 of 4 failed: ValueError: duplicate key")
    known = decide_verdict(SPEC, 4, NotFound("memory", "1234abcd"))
    assert known == DeadLetterVerdict(
        "delivery 4 of 4 failed: NotFound: no memory 1234abcd that this key may read"
    )


@given(st.text(min_size=1), st.integers(1, 10))
def test_a_reason_is_bounded_in_length(text: str, deliveries: int) -> None:
    verdict = decide_verdict(SPEC, deliveries, Reject(text * 100))
    assert isinstance(verdict, DeadLetterVerdict)
    assert len(verdict.reason) <= 500

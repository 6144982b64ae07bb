"""Subject filters, retry and dead-letter decisions, and the stream definitions."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

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
from reverie.contracts.events import dream_subject, git_subject, memory_subject
from reverie.domain.core.errors import NotFound, Unavailable

SPEC = replace(INGEST_ENRICH, max_deliver=4, backoff=(1.0, 5.0))
NAMES = {stream.name: stream for stream in STREAMS}


def _covers(pattern: str, subject: str) -> bool:
    """Whether a stream takes a subject: `*` is one token, `>` one or more at the end."""
    pattern = pattern.replace(".", r"\.").replace("*", "[^.]+").replace(">", ".+")
    return re.fullmatch(pattern, subject) is not None


def test_every_kind_of_event_has_exactly_one_stream() -> None:
    subjects = [
        memory_subject("acme", "remembered"),
        dream_subject("acme", "project/shop"),
        git_subject("acme", "shop"),
    ]
    homes = [
        [s.name for s in STREAMS if any(_covers(p, subject) for p in s.subjects)]
        for subject in subjects
    ]
    assert homes == [["MEMORY"], ["DREAM"], ["GIT"]]


def test_no_two_streams_take_the_same_subject() -> None:
    roots = [{pattern.split(".")[0] for pattern in stream.subjects} for stream in STREAMS]
    assert not any(a & b for a, b in combinations(roots, 2))


def test_every_consumer_reads_an_existing_stream() -> None:
    assert {consumer.stream for consumer in CONSUMERS} <= NAMES.keys()
    assert len({consumer.name for consumer in CONSUMERS}) == len(CONSUMERS)


def test_every_consumer_leaves_room_for_others_beside_a_slow_one() -> None:
    assert all(consumer.max_ack_pending > 1 for consumer in CONSUMERS)


def test_message_ids_are_remembered_longer_than_a_worker_may_be_silent() -> None:
    assert all(consumer.ack_wait < DEDUPE_SECONDS for consumer in CONSUMERS)
    assert all(stream.max_age > DEDUPE_SECONDS for stream in STREAMS)


def test_what_somebody_waits_for_is_delivered_again_ten_seconds_after_a_kill() -> None:
    assert {spec.ack_wait for spec in (INGEST_ENRICH, DREAM_WORKERS, ENGINE_WORKERS)} == {10.0}


def test_a_rejected_message_becomes_a_dead_letter_at_once() -> None:
    assert decide_verdict(SPEC, 1, Reject("no id")) == DeadLetterVerdict("no id")


def test_a_retry_waits_as_long_as_requested() -> None:
    assert decide_verdict(SPEC, 1, Retry(delay=7.5)) == RedeliveryVerdict(7.5)


@pytest.mark.parametrize(("deliveries", "delay"), [(1, 1.0), (2, 5.0), (3, 5.0)])
def test_each_failure_waits_longer_than_the_one_before(deliveries: int, delay: float) -> None:
    assert decide_verdict(SPEC, deliveries, Unavailable("Postgres", "away")) == RedeliveryVerdict(
        delay
    )


@pytest.mark.parametrize("error", [Retry(), ValueError(), Unavailable("Postgres", "away")])
def test_the_last_delivery_is_final_whatever_the_error(error: Exception) -> None:
    assert isinstance(decide_verdict(SPEC, 4, error), DeadLetterVerdict)


def test_an_unlimited_consumer_never_dead_letters_a_failure() -> None:
    assert decide_verdict(replace(SPEC, max_deliver=-1), 1000, ValueError()) == RedeliveryVerdict(
        5.0
    )


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

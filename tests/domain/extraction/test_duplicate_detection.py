"""Duplicates, refinements and contradictions among labelled pairs of memories."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from reverie.domain.core.kinds import Kind
from reverie.domain.graph.duplicate_detection import (
    ComparedMemory,
    DuplicateVerdict,
    compare_memories,
)
from tests.domain.extraction.duplicate_pairs import measure, pairs

ALL = [*pairs("dev"), *pairs("held_out")]
THEN, LATER = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)


def verdict(older: str, newer: str, cosine: float | None = None) -> DuplicateVerdict:
    return compare_memories(ComparedMemory(older), ComparedMemory(newer), cosine).verdict


def test_the_labelled_set_has_thirty_pairs_of_each_kind() -> None:
    assert len(ALL) >= 120
    assert min(Counter(pair.label for pair in ALL).values()) >= 30


@pytest.mark.parametrize("split", ["dev", "held_out"])
def test_merged_pairs_are_duplicates_or_refinements(split: str) -> None:
    found = measure(pairs(split))
    assert found.merge_precision >= 0.95, found.wrong
    assert found.merge_recall >= 0.85, found.wrong


@pytest.mark.parametrize("split", ["dev", "held_out"])
def test_contradictions_are_distinguished_from_similar_memories(split: str) -> None:
    found = measure(pairs(split))
    assert found.contradiction_precision >= 0.95, found.wrong
    assert found.contradiction_recall >= 0.85, found.wrong


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Prefer tabs over spaces in Go", "Prefer spaces over tabs in Go"),
        ("The gateway calls the ledger", "The ledger calls the gateway"),
        ("Run lint before tests in CI", "Run tests before lint in CI"),
        ("Use Redis", "Use Redis"),
        ("The worker retries failed jobs", "The worker retries failed jobs only on Mondays"),
        ("Fixed the cart bug", "Fixed the cart bug report page"),
        ("", ""),
    ],
)
def test_a_reworded_memory_is_no_duplicate(older: str, newer: str) -> None:
    same = older and older == newer
    assert verdict(older, newer) is (
        DuplicateVerdict.DUPLICATE if same else DuplicateVerdict.SIMILAR
    )


def test_adding_a_rejected_alternative_is_no_contradiction() -> None:
    assert (
        verdict("We use pnpm here", "We use pnpm here, do not use npm") is DuplicateVerdict.SIMILAR
    )


def test_a_memory_with_an_extra_clause_is_fuller_in_either_order() -> None:
    short, long = (
        ComparedMemory("Sessions live in Redis"),
        ComparedMemory("Sessions live in Redis, for 30 minutes"),
    )
    assert compare_memories(short, long).fuller_side == "newer"
    assert compare_memories(long, short).verdict is DuplicateVerdict.DUPLICATE
    assert compare_memories(long, short).fuller_side == "older"


def test_different_kinds_keys_files_and_periods_keep_similar_memories_apart() -> None:
    text = "Sessions live in Redis"
    apart = [
        (ComparedMemory(text, Kind.DECISION), ComparedMemory(text, Kind.BUG)),
        (ComparedMemory(text, Kind.TASK), ComparedMemory(text, Kind.TASK)),
        (ComparedMemory(text, key="a"), ComparedMemory(text, key="b")),
        (
            ComparedMemory(text, files=frozenset({"x"})),
            ComparedMemory(text, files=frozenset({"y"})),
        ),
        (ComparedMemory(text, valid_to=THEN), ComparedMemory(text, valid_from=LATER)),
    ]
    assert {compare_memories(*pair).verdict for pair in apart} == {DuplicateVerdict.SIMILAR}
    assert compare_memories(
        ComparedMemory(text, valid_to=LATER), ComparedMemory(text, valid_from=THEN)
    ).verdict is (DuplicateVerdict.DUPLICATE)


def test_another_value_in_another_period_or_of_a_bug_is_no_contradiction() -> None:
    one, two = "The mailer retries 3 times", "The mailer retries 5 times"
    assert verdict(one, two) is DuplicateVerdict.CONTRADICTING
    past = ComparedMemory(one, valid_to=THEN), ComparedMemory(two, valid_from=LATER)
    bugs = ComparedMemory(one, Kind.BUG), ComparedMemory(two, Kind.BUG)
    assert {compare_memories(*pair).verdict for pair in (past, bugs)} == {DuplicateVerdict.SIMILAR}


def test_memories_far_apart_in_meaning_are_never_merged() -> None:
    assert (
        verdict("Sessions live in Redis", "Sessions live in Redis", 0.3) is DuplicateVerdict.SIMILAR
    )


def test_long_texts_do_not_contradict_by_a_single_sentence() -> None:
    talk = "We went through the tickets of the week and wrote down who takes which. " * 10
    yes, no = "Use jsonwebtoken for tokens.", "Use jose instead of jsonwebtoken."
    assert verdict(yes, no) is DuplicateVerdict.CONTRADICTING
    assert verdict(talk + yes, talk + no) is DuplicateVerdict.SIMILAR

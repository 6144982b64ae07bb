from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from tests.likeness_pairs import measure, pairs

from reverie.domain.kinds import Kind
from reverie.domain.likeness import Said, Verdict, judge

ALL = [*pairs("dev"), *pairs("held_out")]
THEN, LATER = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)


def verdict(older: str, newer: str, cosine: float | None = None) -> Verdict:
    return judge(Said(older), Said(newer), cosine).verdict


def test_the_labelled_set_has_thirty_pairs_of_each_kind() -> None:
    assert len(ALL) >= 120
    assert min(Counter(pair.label for pair in ALL).values()) >= 30


@pytest.mark.parametrize("split", ["dev", "held_out"])
def test_what_would_be_merged_is_a_duplicate_or_a_refinement(split: str) -> None:
    found = measure(pairs(split))
    assert found.merge_precision >= 0.95, found.wrong
    assert found.merge_recall >= 0.85, found.wrong


@pytest.mark.parametrize("split", ["dev", "held_out"])
def test_contradictions_are_told_from_what_is_merely_similar(split: str) -> None:
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
def test_words_that_say_it_otherwise_are_no_duplicate(older: str, newer: str) -> None:
    same = older and older == newer
    assert verdict(older, newer) is (Verdict.DUPLICATE if same else Verdict.SIMILAR)


def test_what_adds_that_something_else_is_not_done_contradicts_nothing() -> None:
    assert verdict("We use pnpm here", "We use pnpm here, do not use npm") is Verdict.SIMILAR


def test_a_memory_that_adds_a_clause_is_fuller_whichever_came_first() -> None:
    short, long = Said("Sessions live in Redis"), Said("Sessions live in Redis, for 30 minutes")
    assert judge(short, long).fuller == "newer"
    assert judge(long, short).verdict is Verdict.DUPLICATE
    assert judge(long, short).fuller == "older"


def test_kinds_keys_files_and_periods_keep_like_memories_apart() -> None:
    text = "Sessions live in Redis"
    apart = [
        (Said(text, Kind.DECISION), Said(text, Kind.BUG)),
        (Said(text, Kind.TASK), Said(text, Kind.TASK)),
        (Said(text, key="a"), Said(text, key="b")),
        (Said(text, files=frozenset({"x"})), Said(text, files=frozenset({"y"}))),
        (Said(text, valid_to=THEN), Said(text, valid_from=LATER)),
    ]
    assert {judge(*pair).verdict for pair in apart} == {Verdict.SIMILAR}
    assert judge(Said(text, valid_to=LATER), Said(text, valid_from=THEN)).verdict is (
        Verdict.DUPLICATE
    )


def test_another_value_at_another_time_or_of_a_bug_is_no_contradiction() -> None:
    one, two = "The mailer retries 3 times", "The mailer retries 5 times"
    assert verdict(one, two) is Verdict.CONTRADICTING
    past = Said(one, valid_to=THEN), Said(two, valid_from=LATER)
    bugs = Said(one, Kind.BUG), Said(two, Kind.BUG)
    assert {judge(*pair).verdict for pair in (past, bugs)} == {Verdict.SIMILAR}


def test_far_apart_in_meaning_is_never_merged() -> None:
    assert verdict("Sessions live in Redis", "Sessions live in Redis", 0.3) is Verdict.SIMILAR


def test_long_texts_do_not_contradict_each_other_by_a_sentence_in_each() -> None:
    talk = "We went through the tickets of the week and wrote down who takes which. " * 10
    yes, no = "Use jsonwebtoken for tokens.", "Use jose instead of jsonwebtoken."
    assert verdict(yes, no) is Verdict.CONTRADICTING
    assert verdict(talk + yes, talk + no) is Verdict.SIMILAR

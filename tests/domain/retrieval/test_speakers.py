"""Who speaks a line of a conversation, and whom a question asks about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.retrieval.speakers import (
    MIN_SPEAKER_LINES,
    OTHER_SPEAKER_FACTOR,
    compute_speaker_factor,
    extract_people,
    find_speakers,
    parse_speaker,
)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("When did Ann paint the harbour?", {"Ann"}),
        ("Ann's favourite season?", {"Ann"}),
        ("Error rates rose, why?", set()),
        ("What do Ann and Bob both like?", {"Ann", "Bob"}),
        ("what does ann like", set()),
        ("连接池的上限是什么", set()),
        ("", set()),
    ],
)
def test_names_are_recognized_by_capitals_and_not_by_position(
    question: str, named: set[str]
) -> None:
    assert extract_people(question) == named


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ann: I painted the harbour", {"Ann"}),
        ("**Ann**: I painted it", {"Ann"}),
        ("[10:32] Ann Lee: I painted it", {"Ann", "Lee"}),
        ("Ann: I painted it.\n\nAnn: And sold it.", {"Ann"}),
        ("Ann: did you?\nBob: I did.", set()),
        ("We met.\nAnn: hello", set()),
        ("user: where is the harbour?", set()),
        ("Note to self: buy paint", set()),
        ("Decision: paint it blue", set()),
        ("Todo: paint it", set()),
        ("Question: who paints it?", set()),
        ("http://ann.example", set()),
        ("Ann: " + "long " * 1000, set()),
        (": nobody", set()),
        ("", set()),
    ],
)
def test_a_line_names_its_speaker_and_a_text_of_several_speakers_none(
    text: str, names: set[str]
) -> None:
    assert parse_speaker(text) == names


def test_a_name_with_too_few_lines_is_no_speaker() -> None:
    lines = [f"Ann: line {n}" for n in range(MIN_SPEAKER_LINES)]
    assert find_speakers([*lines, "Bob: one"], {"Ann", "Bob"}) == {"Ann"}
    assert find_speakers(lines[1:], {"Ann"}) == frozenset()
    assert find_speakers(lines, frozenset()) == frozenset()


def test_a_line_of_another_speaker_scores_lower_and_a_note_does_not() -> None:
    assert compute_speaker_factor("Bob: Ann paints so well", {"Ann"}) == OTHER_SPEAKER_FACTOR < 1
    for text in ("Ann: I paint", "Ann paints the harbour", "Ann: I?\nBob: Yes, Ann"):
        assert compute_speaker_factor(text, {"Ann"}) == 1


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text: str) -> None:
    assert extract_people(text) is not None
    assert parse_speaker(f"Ann: {text}") <= {"Ann"}

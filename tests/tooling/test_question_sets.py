"""The question sets of the recall benchmark are complete and consistent."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.quality.question_sets import OWN, own, sets_named

NAMES = ("chinese", "identifiers")
HALVES = {"dev", "held out"}


def test_every_question_set_is_found_by_name() -> None:
    assert sorted(file.stem for file in OWN.glob("*.json")) == list(NAMES)
    assert [one.name for one in sets_named(NAMES)] == [name.capitalize() for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_documents_are_many_and_distinct(name: str) -> None:
    texts = [one.text for one in own(name).documents]
    assert len(texts) >= 150
    assert len(set(texts)) == len(texts)
    assert all(text.strip() == text != "" for text in texts)


@pytest.mark.parametrize("name", NAMES)
def test_questions_are_many_in_each_half_and_distinct(name: str) -> None:
    questions = own(name).questions
    halves = Counter(one.half for one in questions)
    assert set(halves) == HALVES
    assert len(questions) >= 70
    assert min(halves.values()) >= 30
    texts = [one.text for one in questions]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", NAMES)
def test_every_question_has_an_answer_among_the_documents(name: str) -> None:
    questions = own(name)
    known = {one.name for one in questions.documents}
    for asked in questions.questions:
        assert asked.gold
        assert asked.gold <= known, asked.text


@pytest.mark.parametrize("name", NAMES)
def test_every_question_type_is_in_both_halves(name: str) -> None:
    asked = own(name).questions
    types = {one.type for one in asked}
    assert len(types) >= 6
    assert {(one.type, one.half) for one in asked} == {(t, half) for t in types for half in HALVES}

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
def test_a_set_has_many_distinct_documents_and_questions_of_each_type_that_they_answer(
    name: str,
) -> None:
    documents, questions = own(name).documents, own(name).questions
    for texts, least in (
        ([document.text for document in documents], 150),
        ([question.text for question in questions], 70),
    ):
        assert len(texts) >= least
        assert len(set(texts)) == len(texts)
    assert all(document.text.strip() == document.text != "" for document in documents)
    halves = Counter(question.half for question in questions)
    assert set(halves) == HALVES
    assert min(halves.values()) >= 30
    names = {document.name for document in documents}
    for question in questions:
        assert question.gold
        assert question.gold <= names, question.text
    types = {question.type for question in questions}
    assert len(types) >= 6
    assert {(one.type, one.half) for one in questions} == {(t, h) for t in types for h in HALVES}

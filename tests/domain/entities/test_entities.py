"""Entity recognition on labelled texts, and canonical names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.entities.recognition import Entity, EntityType, extract_entities
from tests.domain.entities.labelled_texts import score, texts


@pytest.mark.parametrize("part", ["dev", "held"])
def test_entities_of_labelled_texts_are_found_with_few_false_ones(part: str) -> None:
    made = score(texts(part))
    assert made.precision() >= 0.9, made.mistakes
    assert made.recall() >= 0.8, made.mistakes


def test_the_labelled_texts_are_many_in_two_languages_and_often_without_entities() -> None:
    labelled = texts("dev") + texts("held")
    assert len({text for text, _ in labelled}) >= 150
    assert sum(not labels for _, labels in labelled) >= 30
    assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in text) for text, _ in labelled) >= 20


def test_spellings_of_one_thing_share_one_entity() -> None:
    told = "Postgres, PostgreSQL and postgresql; AuthService is `auth-service`; parse_it() parse_it"
    assert [one.key for one in extract_entities(told)] == [
        "entity:postgresql",
        "entity:auth-service",
        "entity:parse_it",
    ]


def test_a_port_has_its_own_entity_type() -> None:
    assert Entity(EntityType.PORT, "8080").key == "entity:port 8080"


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text: str) -> None:
    assert all(one.name == one.name.lower() for one in extract_entities(text))

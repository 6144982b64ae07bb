"""The relevance uses the cosine of a model whose scale is known, and words beside it."""

from __future__ import annotations

import pytest

from reverie.domain.retrieval.relevance import (
    DEFAULT_THRESHOLD,
    Likeness,
    compute_relevance,
    compute_word_share,
)
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL


@pytest.mark.parametrize("model", [DEFAULT_MODEL, MULTILINGUAL_MODEL])
def test_the_cosine_of_a_calibrated_model_raises_the_relevance(model: str) -> None:
    ratings = [
        compute_relevance(Likeness(cosine, None, 0.3, 200), model) for cosine in (0.3, 0.8, 0.95)
    ]
    assert ratings == sorted(ratings)
    assert ratings[0] < 0.1
    assert ratings[-1] > DEFAULT_THRESHOLD


def test_the_cosine_of_another_model_is_not_used() -> None:
    near, far = (
        compute_relevance(Likeness(cosine, None, 0.5, 200), "another") for cosine in (0.99, 0.1)
    )
    assert near == far == compute_relevance(Likeness(None, None, 0.5, 200), DEFAULT_MODEL)


def test_the_scales_of_two_models_are_apart() -> None:
    """A cosine of 0.8 is near in one model, and that of any two texts in the other."""
    likeness = Likeness(0.8, None, 0.2, 200)
    assert compute_relevance(likeness, DEFAULT_MODEL) > DEFAULT_THRESHOLD
    assert compute_relevance(likeness, MULTILINGUAL_MODEL) < DEFAULT_THRESHOLD


@pytest.mark.parametrize("model", [DEFAULT_MODEL, MULTILINGUAL_MODEL, "another"])
def test_all_words_of_a_question_answer_it_and_none_of_them_do_not(model: str) -> None:
    assert compute_relevance(Likeness(None, None, 1.0, 200), model) > DEFAULT_THRESHOLD
    assert compute_relevance(Likeness(None, None, 0.0, 200), model) < 0.1


@pytest.mark.parametrize("model", [DEFAULT_MODEL, "another"])
def test_the_same_words_in_a_longer_text_say_less(model: str) -> None:
    short, long = (
        compute_relevance(Likeness(0.7, None, 0.5, length), model) for length in (100, 10_000)
    )
    assert long < short


def test_words_count_with_other_endings_but_not_within_other_words() -> None:
    text = "The configuration of getUserById is cached in the catalog."
    assert compute_word_share(["configure", "getuserbyid", "cached"], text) == 1.0
    assert compute_word_share(["log", "figuration"], text) == 0.0
    assert compute_word_share([], text) == 0.0

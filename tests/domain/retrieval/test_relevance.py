"""The relevance uses the cosine of a model whose scale is known, and words beside it."""

from __future__ import annotations

import pytest

from reverie.domain.retrieval.relevance import DEFAULT_THRESHOLD, Likeness, compute_relevance
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL


@pytest.mark.parametrize("model", [DEFAULT_MODEL, MULTILINGUAL_MODEL])
def test_the_cosine_of_a_calibrated_model_raises_the_relevance(model: str) -> None:
    ratings = [compute_relevance(Likeness(cosine, None, 0.3), model) for cosine in (0.3, 0.8, 0.95)]
    assert ratings == sorted(ratings)
    assert ratings[0] < 0.1
    assert ratings[-1] > DEFAULT_THRESHOLD


def test_the_cosine_of_another_model_is_not_used() -> None:
    near, far = (
        compute_relevance(Likeness(cosine, None, 0.5), "another") for cosine in (0.99, 0.1)
    )
    assert near == far == compute_relevance(Likeness(None, None, 0.5), DEFAULT_MODEL)


def test_the_scales_of_two_models_are_apart() -> None:
    """A cosine of 0.8 is near in one model, and that of any two texts in the other."""
    likeness = Likeness(0.8, None, 0.2)
    assert compute_relevance(likeness, DEFAULT_MODEL) > DEFAULT_THRESHOLD
    assert compute_relevance(likeness, MULTILINGUAL_MODEL) < DEFAULT_THRESHOLD


@pytest.mark.parametrize("model", [DEFAULT_MODEL, MULTILINGUAL_MODEL, "another"])
def test_all_words_of_a_question_answer_it_and_none_of_them_do_not(model: str) -> None:
    assert compute_relevance(Likeness(None, None, 1.0), model) > DEFAULT_THRESHOLD
    assert compute_relevance(Likeness(None, None, 0.0), model) < 0.1

"""Only candidates that could still reach the result are loaded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.retrieval.question_parsing import parse_question
from reverie.domain.retrieval.scoring import (
    PHRASE_FACTOR,
    choose_distinct,
    compute_max_text_factor,
    compute_text_factors,
)
from tests.domain.made_up_memories import NOW

TEXTS = st.lists(st.integers(0, 5), max_size=20)


@given(TEXTS, st.integers(1, 8))
def test_the_first_are_chosen_until_there_are_enough_different_texts(
    texts: list[int], count: int
) -> None:
    order = np.arange(len(texts))[::-1].copy()
    hashes = np.array(texts, np.uint64)
    chosen = choose_distinct(order, hashes, count).tolist()
    assert chosen == order.tolist()[: len(chosen)]
    distinct = {texts[place] for place in chosen}
    assert len(distinct) == min(count, len(set(texts)))
    if len(set(texts)) > count:
        # The last one is needed: without it there are too few.
        assert len({texts[place] for place in chosen[:-1]}) == count - 1
    else:
        assert len(chosen) == len(texts)


@pytest.mark.parametrize("question", ["pool", 'the "pool of workers"', "how is pool_size set?"])
def test_no_text_has_a_higher_factor_than_the_maximal_one(question: str) -> None:
    parsed = parse_question(question, NOW)
    for text in ("the pool of workers", "pool_size", "Ann: the pool of workers", ""):
        factors = compute_text_factors(text, parsed, {"Bob"})
        factors.pop("name", None)
        assert np.prod(list(factors.values())) <= compute_max_text_factor(parsed)


def test_a_phrase_alone_raises_the_maximal_factor_of_a_text() -> None:
    assert compute_max_text_factor(parse_question("pool_size", NOW)) == 1
    asked = parse_question('where is the "pool of workers"', NOW)
    assert compute_max_text_factor(asked) == PHRASE_FACTOR

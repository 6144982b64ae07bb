"""Not the same thing twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.diversity import diversify, likeness, tokens

TEXTS = ["pool size is ten", "pool size is ten now", "deploys run at night"]


def test_a_repetition_gives_way_to_what_says_something_else() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokens(one) for one in TEXTS], 3)
    assert [place for place, _ in order] == [0, 2, 1]
    assert order[2][1] == likeness(tokens(TEXTS[0]), tokens(TEXTS[1]))


def test_with_all_weight_on_the_score_nothing_moves() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokens(one) for one in TEXTS], 3, weight=1.0)
    assert [place for place, _ in order] == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(0, 1), st.text(max_size=20)), max_size=12), st.integers(0, 15))
def test_each_is_taken_once_and_the_best_first(items: list[tuple[float, str]], limit: int) -> None:
    scores, texts = [one[0] for one in items], [tokens(one[1]) for one in items]
    places = [place for place, _ in diversify(scores, texts, limit)]
    assert len(places) == len(set(places)) == min(limit, len(items))
    if places:
        assert scores[places[0]] == max(scores)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.text("abc ", max_size=9)), max_size=12))
def test_it_takes_at_each_step_what_is_best_then(items: list[tuple[int, str]]) -> None:
    items.sort(reverse=True)
    scores, texts = [float(one[0]) for one in items], [tokens(one[1]) for one in items]
    best, before = max(scores, default=0.0) or 1.0, list[int]()
    for place, near in diversify(scores, texts, len(items)):
        alike = [max((likeness(one, texts[b]) for b in before), default=0.0) for one in texts]
        worth = [0.7 * score / best - (1 - 0.7) * a for score, a in zip(scores, alike, strict=True)]
        left = [one for one in range(len(items)) if one not in before]
        assert (place, near) == (max(left, key=lambda one: (worth[one], -one)), alike[place])
        before.append(place)

"""Fusion, diversity and the order of results."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.retrieval.answer import ADJACENT_TURN_SHARE, score_with_adjacent_turns
from reverie.domain.retrieval.candidates import (
    NO_HITS,
    ArmHits,
    ScoredMemory,
    sort_memories,
)
from reverie.domain.retrieval.fusion import find_unembedded, fuse_arms, rescore_with_arm
from reverie.domain.retrieval.scoring import boost_named
from reverie.domain.retrieval.selection import diversify, jaccard_similarity, tokenize
from tests.domain.retrieval.made_up_candidates import candidates, hits, listed, ranks_of, uid

TEXTS = ["pool size is ten", "pool size is ten now", "deploys run at night"]


def test_a_repetition_is_ranked_after_different_content() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokenize(one) for one in TEXTS].__getitem__, 3)
    assert [place for place, _ in order] == [0, 2, 1]
    assert order[2][1] == jaccard_similarity(tokenize(TEXTS[0]), tokenize(TEXTS[1]))


def test_plain_letters_give_the_same_words_beside_others_and_alone() -> None:
    text = "".join(map(chr, range(128))) + " Pool_Size of worker-7, 8.5"
    assert tokenize(text) == tokenize(f"{text} 池 é") - {"池", "é"}
    assert {"pool", "size", "worker", "7", "8", "5"} <= tokenize(text)


def test_with_all_weight_on_the_score_the_order_stays() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokenize(one) for one in TEXTS].__getitem__, 3, weight=1.0)
    assert [place for place, _ in order] == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(0, 1), st.text(max_size=20)), max_size=12), st.integers(0, 15))
def test_each_hit_is_selected_once_and_the_best_first(
    items: list[tuple[float, str]], limit: int
) -> None:
    scores, texts = [one[0] for one in items], [tokenize(one[1]) for one in items]
    places = [place for place, _ in diversify(scores, texts.__getitem__, limit)]
    assert len(places) == len(set(places)) == min(limit, len(items))
    if places:
        assert scores[places[0]] == max(scores)


@given(st.lists(st.tuples(st.integers(0, 4), st.text("abc ", max_size=9)), max_size=12))
def test_each_step_selects_the_best_remaining_hit(items: list[tuple[int, str]]) -> None:
    items.sort(reverse=True)
    scores, texts = [float(one[0]) for one in items], [tokenize(one[1]) for one in items]
    best, before = max(scores, default=0.0) or 1.0, list[int]()
    for place, near in diversify(scores, texts.__getitem__, len(items)):
        alike = [
            max((jaccard_similarity(one, texts[b]) for b in before), default=0.0) for one in texts
        ]
        worth = [0.7 * score / best - (1 - 0.7) * a for score, a in zip(scores, alike, strict=True)]
        left = [one for one in range(len(items)) if one not in before]
        assert (place, near) == (max(left, key=lambda one: (worth[one], -one)), alike[place])
        before.append(place)


@st.composite
def arm(draw: st.DrawFn) -> ArmHits:
    """An arm's answer: distinct memories, best first."""
    docs = draw(st.lists(st.integers(1, 30), unique=True, max_size=12))
    scores = draw(st.lists(st.floats(0.01, 9), min_size=len(docs), max_size=len(docs)))
    return hits(*zip(docs, sorted(scores, reverse=True), strict=True))


@given(arm(), arm())
def test_the_fused_order_does_not_depend_on_the_order_of_arms(
    words: ArmHits, meaning: ArmHits
) -> None:
    one = fuse_arms({"words": words, "meaning": meaning})
    other = fuse_arms({"meaning": meaning, "words": words})
    assert listed(one) == listed(other)


@given(arm(), arm())
def test_every_hit_is_fused_once_with_its_ranks_and_a_score_up_to_one(
    words: ArmHits, meaning: ArmHits
) -> None:
    found = fuse_arms({"words": words, "meaning": meaning})
    assert set(found.docs.tolist()) == {*words.docs.tolist(), *meaning.docs.tolist()}
    assert len(found) == len(set(found.docs.tolist()))
    assert ((found.scores >= 0) & (found.scores <= 1 + 1e-9)).all()
    for name, of_arm in (("words", words), ("meaning", meaning)):
        expected = {doc: rank for rank, doc in enumerate(of_arm.docs.tolist(), start=1)}
        ranks = found.ranks.get(name, np.zeros(len(found), np.int32)).tolist()
        assert {d: r for d, r in zip(found.docs.tolist(), ranks, strict=True) if r} == expected
        if len(of_arm):
            raw = dict(zip(found.docs.tolist(), found.raw_scores[name].tolist(), strict=True))
            known = {doc: score for doc, score in raw.items() if not np.isnan(score)}
            assert known == dict(zip(of_arm.docs.tolist(), of_arm.scores.tolist(), strict=True))


@given(arm(), arm(), st.randoms(use_true_random=False))
def test_sorting_by_score_does_not_depend_on_the_input_order(
    words: ArmHits, meaning: ArmHits, chance: random.Random
) -> None:
    found = fuse_arms({"words": words, "meaning": meaning})
    places = list(range(len(found)))
    chance.shuffle(places)
    shuffled = found.take(np.array(places, np.int64))
    assert listed(shuffled.sort()) == listed(found)
    described = [ScoredMemory(uid(doc), score) for doc, score in listed(found)]
    chance.shuffle(places)
    assert sort_memories(described[place] for place in places) == described


def test_ties_are_broken_by_the_smaller_number() -> None:
    tied = [ScoredMemory(uid(n), 0.5) for n in (3, 1, 2)]
    assert [one.id for one in sort_memories(tied)] == [uid(1), uid(2), uid(3)]
    assert candidates((3, 0.5), (1, 0.5), (2, 0.5)).sort().docs.tolist() == [1, 2, 3]
    both = fuse_arms({"words": hits((2, 1.0)), "meaning": hits((1, 1.0))})
    assert both.docs.tolist() == [1, 2]


def test_a_hit_that_is_first_in_both_arms_gets_the_full_score() -> None:
    words, meaning = hits((5, 7.0), (1, 6.9)), hits((5, 0.9), (2, 0.8))
    found = fuse_arms({"words": words, "meaning": meaning})
    assert found.docs[0] == 5
    assert found.scores[0] == pytest.approx(1.0)
    assert ranks_of(found, 5) == {"words": 1, "meaning": 1}


def test_a_single_arm_keeps_its_order() -> None:
    for name in ("words", "meaning"):
        found = fuse_arms({name: hits((9, 3.0), (4, 2.0), (7, 1.0))})
        assert found.docs.tolist() == [9, 4, 7]


def test_no_hits_fuse_to_nothing() -> None:
    assert listed(fuse_arms({})) == []
    assert listed(fuse_arms({"words": NO_HITS, "meaning": NO_HITS})) == []


def test_reciprocal_rank_fusion_uses_ranks_only() -> None:
    words, meaning = hits((1, 9.0), (2, 0.1)), hits((2, 0.9), (3, 0.8))
    found = fuse_arms(
        {"words": words, "meaning": meaning}, {"words": 1, "meaning": 1}, "reciprocal"
    )
    assert found.docs.tolist() == [2, 1, 3]


def test_the_last_of_many_semantic_candidates_scores_zero() -> None:
    many = [(n, 0.9 - n / 1000) for n in range(100)]
    found = dict(listed(fuse_arms({"meaning": hits(*many)})))
    assert (found[0], found[99]) == (1.0, 0.0)
    few = dict(listed(fuse_arms({"meaning": hits(*many[:99])})))
    assert few[98] > 0.7


def test_an_additional_arm_rescores_the_hits_it_knows() -> None:
    found = candidates((1, 1.0), (2, 0.5), (3, 0.4), words=(1, 2, 3))
    judged = rescore_with_arm(found, "sparse", hits((3, 8.0), (1, 2.0)), 0.4)
    assert listed(judged) == [
        (1, pytest.approx(0.6 + 0.4 * 0.25)),
        (3, pytest.approx(0.24 + 0.4)),
        (2, 0.5),
    ]
    assert judged.fused.tolist() == judged.scores.tolist()
    assert ranks_of(judged, 3) == {"words": 3, "sparse": 1}
    assert judged.raw_scores["sparse"][:2].tolist() == [2.0, 8.0]
    assert np.isnan(judged.raw_scores["sparse"][2])
    assert listed(rescore_with_arm(found, "sparse", NO_HITS, 0.4)) == listed(found)
    longer = rescore_with_arm(found, "sparse", hits((3, 8.0), (1, 2.0), long=[3]), 0.4)
    assert longer.docs[0] == 3
    assert longer.scores[0] == pytest.approx(0.2 * 0.4 + 0.8)
    by_rank = rescore_with_arm(found, "sparse", hits((3, 8.0)), 0.4, "reciprocal")
    assert by_rank.scores[1] == pytest.approx(0.24 + 0.4)


def test_hits_without_vectors_are_marked_even_if_they_were_not_searched_by_meaning() -> None:
    found = fuse_arms(
        {"words": hits((1, 3.0), (2, 2.0), (3, 1.0)), "meaning": hits((2, 0.9), (3, 0.8))}
    )
    is_whole = found.docs == 2
    assert found.docs[find_unembedded(found, is_whole)].tolist() == [1]
    by_words = fuse_arms({"words": hits((1, 3.0), (2, 2.0), (3, 1.0))})
    assert not find_unembedded(by_words, by_words.docs == 2).any()


def test_turns_lend_score_to_adjacent_turns_of_their_session() -> None:
    here, there = uid(1), uid(2)
    lent = score_with_adjacent_turns(
        {
            uid(11): (here, 4, 1.0),
            uid(12): (here, 5, 0.2),
            uid(13): (here, 9, 0.2),
            uid(14): (there, 5, 0.2),
        }
    )
    assert lent[uid(12)] == pytest.approx(0.2 + ADJACENT_TURN_SHARE)
    assert lent[uid(13)] == lent[uid(14)] == 0.2


def test_memories_that_hold_the_name_rank_above_all_others() -> None:
    found = [
        ScoredMemory(uid(1), 0.9),
        ScoredMemory(uid(2), 0.6),
        ScoredMemory(uid(3), 0.1),
        ScoredMemory(uid(4), 0.0),
    ]
    ordered = boost_named(found, {uid(3), uid(4)})
    assert [one.id for one in ordered] == [uid(3), uid(1), uid(2), uid(4)]
    assert ordered[2].score == pytest.approx(ordered[1].score * 2 / 3)
    assert "named" in ordered[1].factors
    for first in (set(), {uid(1)}, {uid(4)}, {one.id for one in found}):
        assert boost_named(found, first) == found

"""Fusion, score factors, neighbour expansion, diversity and the order of results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import MemoryStatus
from reverie.domain.retrieval.answer import ADJACENT_TURN_SHARE, score_with_adjacent_turns
from reverie.domain.retrieval.candidates import (
    CandidateFacts,
    NeighbourEdge,
    ScoredMemory,
    SearchHit,
    apply_factors,
    sort_by_score,
)
from reverie.domain.retrieval.fusion import find_unembedded, fuse_arms, rescore_with_arm
from reverie.domain.retrieval.graph_expansion import EDGE_WEIGHTS, HOP_WEIGHT, expand_neighbours
from reverie.domain.retrieval.question_parsing import QuestionIntent, parse_question
from reverie.domain.retrieval.scoring import boost_named, compute_factors
from reverie.domain.retrieval.selection import diversify, jaccard_similarity, tokenize
from reverie.domain.retrieval.succession import rank_successors_first

TEXTS = ["pool size is ten", "pool size is ten now", "deploys run at night"]


def test_a_repetition_is_ranked_after_different_content() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokenize(one) for one in TEXTS], 3)
    assert [place for place, _ in order] == [0, 2, 1]
    assert order[2][1] == jaccard_similarity(tokenize(TEXTS[0]), tokenize(TEXTS[1]))


def test_with_all_weight_on_the_score_the_order_stays() -> None:
    order = diversify([1.0, 0.99, 0.9], [tokenize(one) for one in TEXTS], 3, weight=1.0)
    assert [place for place, _ in order] == [0, 1, 2]


@given(st.lists(st.tuples(st.floats(0, 1), st.text(max_size=20)), max_size=12), st.integers(0, 15))
def test_each_hit_is_selected_once_and_the_best_first(
    items: list[tuple[float, str]], limit: int
) -> None:
    scores, texts = [one[0] for one in items], [tokenize(one[1]) for one in items]
    places = [place for place, _ in diversify(scores, texts, limit)]
    assert len(places) == len(set(places)) == min(limit, len(items))
    if places:
        assert scores[places[0]] == max(scores)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.text("abc ", max_size=9)), max_size=12))
def test_each_step_selects_the_best_remaining_hit(items: list[tuple[int, str]]) -> None:
    items.sort(reverse=True)
    scores, texts = [float(one[0]) for one in items], [tokenize(one[1]) for one in items]
    best, before = max(scores, default=0.0) or 1.0, list[int]()
    for place, near in diversify(scores, texts, len(items)):
        alike = [
            max((jaccard_similarity(one, texts[b]) for b in before), default=0.0) for one in texts
        ]
        worth = [0.7 * score / best - (1 - 0.7) * a for score, a in zip(scores, alike, strict=True)]
        left = [one for one in range(len(items)) if one not in before]
        assert (place, near) == (max(left, key=lambda one: (worth[one], -one)), alike[place])
        before.append(place)


NOW = datetime(2025, 6, 1, tzinfo=UTC)
hit = SearchHit


def edge(near: UUID, far: UUID, kind: str = "led_to", weight: float = 1.0) -> NeighbourEdge:
    return NeighbourEdge(near, far, kind, weight)


def uid(n: int) -> UUID:
    return UUID(int=n)


def facts(n: int = 1, **fields: Any) -> CandidateFacts:
    made = CandidateFacts(
        id=uid(n),
        kind=Kind.LESSON,
        tier=Tier.WARM,
        status=MemoryStatus.ACTIVE,
        scope="global",
        confidence=0.8,
        pinned=False,
        created_at=NOW,
        content_hash=b"hash",
    )
    return made._replace(**({"kind": Kind.DECISION} | fields))


@st.composite
def arm(draw: st.DrawFn) -> list[SearchHit]:
    """An arm's answer: distinct ids, best first."""
    ids = draw(st.lists(st.integers(1, 30), unique=True, max_size=12))
    scores = draw(st.lists(st.floats(0.01, 9), min_size=len(ids), max_size=len(ids)))
    return [hit(uid(n), s) for n, s in zip(ids, sorted(scores, reverse=True), strict=True)]


@given(arm(), arm())
def test_the_fused_order_does_not_depend_on_the_order_of_arms(
    words: list[SearchHit], meaning: list[SearchHit]
) -> None:
    one = fuse_arms({"words": words, "meaning": meaning})
    other = fuse_arms({"meaning": meaning, "words": words})
    assert [(f.id, f.score) for f in one] == [(f.id, f.score) for f in other]


@given(arm(), arm())
def test_every_hit_is_fused_once_with_its_ranks_and_a_score_up_to_one(
    words: list[SearchHit], meaning: list[SearchHit]
) -> None:
    found = fuse_arms({"words": words, "meaning": meaning})
    assert {one.id for one in found} == {hit.id for hit in words + meaning}
    assert len(found) == len({one.id for one in found})
    for one in found:
        assert 0 <= one.score <= 1 + 1e-9
        for name, hits in (("words", words), ("meaning", meaning)):
            if name in one.arm_ranks:
                assert hits[one.arm_ranks[name] - 1].id == one.id


@given(arm(), arm(), st.randoms(use_true_random=False))
def test_sorting_by_score_does_not_depend_on_the_input_order(
    words: list[SearchHit], meaning: list[SearchHit], chance: random.Random
) -> None:
    found = fuse_arms({"words": words, "meaning": meaning})
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert sort_by_score(shuffled) == found


def test_ties_are_broken_by_the_smaller_id() -> None:
    tied = [ScoredMemory(uid(n), 0.5) for n in (3, 1, 2)]
    assert [one.id for one in sort_by_score(tied)] == [uid(1), uid(2), uid(3)]
    both = fuse_arms({"words": [hit(uid(2), 1.0)], "meaning": [hit(uid(1), 1.0)]})
    assert [one.id for one in both] == [uid(1), uid(2)]


def test_a_hit_that_is_first_in_both_arms_gets_the_full_score() -> None:
    words = [hit(uid(5), 7.0), hit(uid(1), 6.9)]
    meaning = [hit(uid(5), 0.9), hit(uid(2), 0.8)]
    found = fuse_arms({"words": words, "meaning": meaning})
    assert found[0].id == uid(5)
    assert found[0].score == pytest.approx(1.0)
    assert found[0].arm_ranks == {"words": 1, "meaning": 1}


def test_a_single_arm_keeps_its_order() -> None:
    hits = [hit(uid(9), 3.0), hit(uid(4), 2.0), hit(uid(7), 1.0)]
    for name in ("words", "meaning"):
        assert [one.id for one in fuse_arms({name: hits})] == [hit.id for hit in hits]


def test_no_hits_fuse_to_nothing() -> None:
    assert fuse_arms({}) == []
    assert fuse_arms({"words": [], "meaning": []}) == []


READING = parse_question("anything at all", NOW)


def _worth(one: ScoredMemory, memory: CandidateFacts) -> ScoredMemory:
    return apply_factors(one, compute_factors(memory, READING, NOW))


def _weighed(**fields: Any) -> float:
    return _worth(ScoredMemory(uid(1), 0.6), facts(**fields)).score


def test_a_superseded_memory_ranks_below_its_successor() -> None:
    old = facts(1, status=MemoryStatus.SUPERSEDED)
    new = facts(2)
    weighed = [_worth(ScoredMemory(m.id, 0.6), m) for m in (old, new)]
    assert [one.id for one in sort_by_score(weighed)] == [uid(2), uid(1)]


def test_superseding_a_memory_does_not_reset_its_age() -> None:
    old = facts(
        1,
        status=MemoryStatus.SUPERSEDED,
        created_at=NOW - timedelta(days=60),
    )
    new = facts(2, created_at=NOW - timedelta(days=30))
    weighed = [_worth(ScoredMemory(m.id, s), m) for m, s in ((old, 0.65), (new, 0.6))]
    assert [one.id for one in sort_by_score(weighed)] == [uid(2), uid(1)]
    assert _weighed(created_at=NOW - timedelta(days=30)) < _weighed()


def test_age_counts_from_creation_and_not_from_the_start_of_validity() -> None:
    month_ago = NOW - timedelta(days=30)
    assert _weighed(valid_from=month_ago) == _weighed()
    assert _weighed(valid_from=month_ago) == _weighed()
    assert _weighed(created_at=month_ago) == pytest.approx(_weighed() / 2)


def test_confidence_staleness_and_age_lower_the_score() -> None:
    plain = _weighed()
    assert _weighed(confidence=0.4) == pytest.approx(plain / 2)
    assert plain > _weighed(staleness=0.5) > _weighed(staleness=1.0) > 0
    assert _weighed(created_at=NOW - timedelta(days=60)) == pytest.approx(plain / 4)


def test_pinned_memories_do_not_age() -> None:
    old = NOW - timedelta(days=900)
    assert _weighed(pinned=True, created_at=old) == _weighed(pinned=True) > _weighed()


def _expanded(found: Sequence[ScoredMemory], *lines: NeighbourEdge) -> list[ScoredMemory]:
    return expand_neighbours(found, lines)


def test_a_neighbour_ranks_below_the_hit_that_led_to_it() -> None:
    [first, second] = _expanded([ScoredMemory(uid(1), 0.8, {"words": 1})], edge(uid(1), uid(2)))
    assert (first.id, second.id) == (uid(1), uid(2))
    assert 0 < second.score < first.score
    assert "graph" in second.arm_ranks


def test_a_hit_keeps_its_score_or_takes_the_better_one_of_a_neighbour() -> None:
    found = [ScoredMemory(uid(1), 0.8, {"words": 1}), ScoredMemory(uid(2), 0.1, {"words": 2})]
    [first, second] = _expanded(found, edge(uid(1), uid(2)), edge(uid(2), uid(1)))
    assert first == found[0]
    assert second.score == pytest.approx(0.8 * HOP_WEIGHT)
    assert second.arm_ranks == {"words": 2}
    [hop] = second.hops
    assert (hop.source, hop.kind) == (uid(1), "led_to")


def test_adjacent_turns_add_to_the_score() -> None:
    found = [ScoredMemory(uid(1), 0.8), ScoredMemory(uid(2), 0.6), ScoredMemory(uid(3), 0.4)]
    lines = [
        edge(uid(1), uid(2), kind="follows"),
        edge(uid(3), uid(2), kind="follows", weight=0.5),
        edge(uid(1), uid(2), kind="relates_to"),
    ]
    [beside] = [one for one in _expanded(found, *lines) if one.id == uid(2)]
    lent = (0.8 + 0.5 * 0.4) * EDGE_WEIGHTS["follows"] * HOP_WEIGHT
    assert beside.score == pytest.approx(0.6 + lent)


def test_the_strongest_of_several_edges_counts_in_any_order() -> None:
    found = [ScoredMemory(uid(1), 0.8), ScoredMemory(uid(2), 0.4)]
    lines = [
        edge(uid(2), uid(3)),
        edge(uid(1), uid(3)),
        edge(uid(1), uid(3), weight=0.2),
    ]
    one, other = _expanded(found, *lines), _expanded(found, *lines[::-1])
    assert one == other
    [third] = [f for f in one if f.id == uid(3)]
    assert third.score == pytest.approx(0.8 * HOP_WEIGHT)


def test_many_edges_from_similar_memories_do_not_make_a_hub_the_best() -> None:
    found = [ScoredMemory(uid(n), 0.5) for n in range(1, 30)]
    lines = [edge(uid(n), uid(99), kind="relates_to") for n in range(1, 30)]
    [hub] = [f for f in _expanded(found, *lines) if f.id == uid(99)]
    assert hub.score < 0.5


def test_a_further_hop_adds_nothing_to_existing_hits() -> None:
    found = [ScoredMemory(uid(1), 0.8), ScoredMemory(uid(2), 0.1)]
    lines = [edge(uid(1), uid(2)), edge(uid(1), uid(3))]
    further = expand_neighbours(found, lines, only_new=True)
    assert {f.id: f.score for f in further}[uid(2)] == 0.1
    assert uid(3) in {f.id for f in further}


def test_a_why_question_prefers_causal_edges() -> None:
    found, lines = (
        [ScoredMemory(uid(1), 0.8)],
        [edge(uid(1), uid(2)), edge(uid(1), uid(3), kind="supersedes")],
    )
    plain = {f.id: f.score for f in expand_neighbours(found, lines)}
    asked = {f.id: f.score for f in expand_neighbours(found, lines, QuestionIntent.WHY)}
    assert asked[uid(2)] > plain[uid(2)]
    assert asked[uid(2)] > asked[uid(3)]


def test_reciprocal_rank_fusion_uses_ranks_only() -> None:
    words, meaning = (
        [hit(uid(1), 9.0), hit(uid(2), 0.1)],
        [hit(uid(2), 0.9), hit(uid(3), 0.8)],
    )
    found = fuse_arms(
        {"words": words, "meaning": meaning}, {"words": 1, "meaning": 1}, "reciprocal"
    )
    assert [one.id for one in found] == [uid(2), uid(1), uid(3)]


def test_file_anchors_add_no_neighbours() -> None:
    found = [ScoredMemory(uid(1), 0.8)]
    assert _expanded(found, edge(uid(1), uid(2), kind="touches")) == found


def test_an_edge_from_an_unknown_memory_is_ignored() -> None:
    assert _expanded([ScoredMemory(uid(1), 0.8)], edge(uid(7), uid(8))) == [
        ScoredMemory(uid(1), 0.8)
    ]


def test_the_last_of_many_semantic_candidates_scores_zero() -> None:
    many = [hit(uid(n), 0.9 - n / 1000) for n in range(100)]
    found = {one.id: one.score for one in fuse_arms({"meaning": many})}
    assert (found[uid(0)], found[uid(99)]) == (1.0, 0.0)
    few = {one.id: one.score for one in fuse_arms({"meaning": many[:99]})}
    assert few[uid(98)] > 0.7


def test_an_additional_arm_rescores_the_hits_it_knows() -> None:
    found = [
        ScoredMemory(uid(n), score, {"words": n}, fused_score=score)
        for n, score in ((1, 1.0), (2, 0.5), (3, 0.4))
    ]
    judged = rescore_with_arm(found, "sparse", [hit(uid(3), 8.0), hit(uid(1), 2.0)], 0.4)
    assert [(one.id, one.score) for one in judged] == [
        (uid(1), pytest.approx(0.6 + 0.4 * 0.25)),
        (uid(3), pytest.approx(0.24 + 0.4)),
        (uid(2), 0.5),
    ]
    assert judged[1].arm_ranks == {"words": 3, "sparse": 1}
    assert judged[1].raw_scores == {"sparse": 8.0}
    assert rescore_with_arm(found, "sparse", [], 0.4) == found
    longer = rescore_with_arm(
        found, "sparse", [hit(uid(3), 8.0), hit(uid(1), 2.0)], 0.4, long_ids={uid(3)}
    )
    assert longer[0].id == uid(3)
    assert longer[0].score == pytest.approx(0.2 * 0.4 + 0.8)
    by_rank = rescore_with_arm(found, "sparse", [hit(uid(3), 8.0)], 0.4, "reciprocal")
    assert by_rank[1].score == pytest.approx(0.24 + 0.4)


def test_hits_without_vectors_are_marked_even_if_their_vectors_arrive_meanwhile() -> None:
    by_words = [
        hit(uid(1), 3.0, False),
        hit(uid(2), 2.0),
        hit(uid(3), 1.0, False),
    ]
    by_meaning = [hit(uid(2), 0.9), hit(uid(3), 0.8)]
    assert find_unembedded(by_words, by_meaning) == {uid(1)}
    assert find_unembedded(by_words, []) == frozenset()


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


def test_a_superseded_memory_is_moved_below_all_its_successors() -> None:
    found = [
        ScoredMemory(uid(1), 0.9),
        ScoredMemory(uid(2), 0.8),
        ScoredMemory(uid(3), 0.3),
        ScoredMemory(uid(4), 0.5),
    ]
    ordered = rank_successors_first(found, {uid(1): uid(2), uid(2): uid(3), uid(4): uid(9)})
    assert [one.id for one in ordered] == [uid(3), uid(2), uid(1), uid(4)]
    assert ordered[0].score == 0.9
    assert "successor" in ordered[0].factors
    assert rank_successors_first(found, {}) == [*found[:2], found[3], found[2]]


def test_a_superseded_memory_without_score_stays_in_the_results() -> None:
    found = [ScoredMemory(uid(1), 0.0), ScoredMemory(uid(2), 0.0)]
    ordered = rank_successors_first(found, {uid(1): uid(2)})
    assert [one.id for one in ordered] == [uid(2), uid(1)]


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

"""The factors of facts: age, confidence, staleness, succession and pins."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.core.confidence import HALF_LIVES, DecayPolicy, current_confidence
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import Memory, MemoryStatus, MemoryUsage
from reverie.domain.retrieval.question_parsing import parse_question
from reverie.domain.retrieval.ranking_facts import KINDS, encode_facts, encode_moment, list_ids
from reverie.domain.retrieval.scoring import (
    CENTRALITY_WEIGHT,
    KIND_FACTOR,
    PERIOD_FACTOR,
    PINNED_FACTOR,
    PROJECT_FACTOR,
    TIER_FACTORS,
    compute_confidences,
    compute_factors,
)
from tests.domain.made_up_memories import NOW
from tests.domain.retrieval.made_up_candidates import facts, memory, uid

READING = parse_question("anything at all", NOW)


def _weigh(*scored: tuple[Memory, float]) -> list[float]:
    totals = np.array([score for _, score in scored])
    for factor in compute_factors(facts(*(one for one, _ in scored)), READING, NOW).values():
        totals *= factor
    return list(totals.tolist())


def _weighed(**fields: Any) -> float:
    return _weigh((memory(**fields), 0.6))[0]


def test_a_superseded_memory_ranks_below_its_successor() -> None:
    old, new = _weigh((memory(1, status=MemoryStatus.SUPERSEDED), 0.6), (memory(2), 0.6))
    assert old < new


def test_superseding_a_memory_does_not_reset_its_age() -> None:
    two_months_ago, month_ago = NOW - timedelta(days=60), NOW - timedelta(days=30)
    superseded = memory(1, status=MemoryStatus.SUPERSEDED, created_at=two_months_ago)
    old, new = _weigh((superseded, 0.65), (memory(2, created_at=month_ago), 0.6))
    assert old < new
    assert _weighed(created_at=NOW - timedelta(days=30)) < _weighed()


def test_age_counts_from_creation_and_not_from_the_start_of_validity() -> None:
    month_ago = NOW - timedelta(days=30)
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


MOMENTS = st.integers(-500, 3).map(lambda days: NOW + timedelta(days=days, seconds=11))


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    """A memory of any kind, age and use."""
    # As many digits as the store keeps.
    figures = st.integers(0, 10_000).map(lambda number: number / 10_000)
    use = MemoryUsage(1, draw(st.none() | MOMENTS), draw(figures))
    return memory(
        draw(st.integers(1, 2**127)),
        kind=draw(st.sampled_from(Kind)),
        status=draw(st.sampled_from(MemoryStatus)),
        confidence=draw(figures),
        pinned=draw(st.booleans()),
        linked=draw(st.booleans()),
        created_at=draw(MOMENTS),
        confirmed_at=draw(st.none() | MOMENTS),
        use=use,
    )


@given(st.lists(memories(), max_size=8), st.booleans())
def test_confidences_are_those_of_the_memories(made: list[Memory], halved: bool) -> None:
    decay = DecayPolicy({kind: days / (2 if halved else 1) for kind, days in HALF_LIVES.items()})
    records = encode_facts((place, None, one) for place, one in enumerate(made))
    assert list_ids(records) == [one.id for one in made]
    records["used"] = [encode_moment(one.use.last) for one in made]
    records["boost"] = [one.use.boost for one in made]
    expected = [current_confidence(one, NOW, decay) for one in made]
    assert compute_confidences(records, NOW, decay).tolist() == pytest.approx(expected, abs=1e-6)


def test_each_factor_applies_to_the_memories_that_it_is_meant_for() -> None:
    question = parse_question("which decisions did we take in May 2025?", NOW)
    question = replace(
        question,
        projects=frozenset({"web-shop"}),
        preferred_kinds=frozenset({Kind.DECISION}),
    )
    assert question.time_range is not None
    within = question.time_range.since
    table = facts(
        memory(1, scope="project/web-shop", created_at=within, tier=Tier.HOT),
        memory(2, kind=Kind.BUG, created_at=within - timedelta(seconds=1), pinned=True),
        memory(3, valid_from=within, scope="project/web-shop/feature/cart", tier=Tier.COLD),
        memory(4, created_at=within, valid_from=question.time_range.until),
        ranks=(0.0, 1.0, 0.5),
    )
    found = {
        name: [round(value, 6) for value in values.tolist()]
        for name, values in compute_factors(table, question, NOW).items()
    }
    assert found["project"] == [PROJECT_FACTOR, 1, PROJECT_FACTOR, 1]
    assert found["kind"] == [KIND_FACTOR, 1, KIND_FACTOR, KIND_FACTOR]
    assert found["period"] == [PERIOD_FACTOR, 1, PERIOD_FACTOR, 1]
    assert found["tier"] == [TIER_FACTORS[Tier.HOT], PINNED_FACTOR, TIER_FACTORS[Tier.COLD], 1]
    assert found["centrality"] == pytest.approx(
        [1, 1 + CENTRALITY_WEIGHT, 1 + CENTRALITY_WEIGHT / 2, 1]
    )
    assert found["superseded"] == found["staleness"] == [1, 1, 1, 1]


def test_facts_are_aligned_with_the_memories_that_are_asked_for() -> None:
    table = facts(memory(1), memory(2, kind=Kind.BUG)).join(facts(memory(3, scope="project/p")))
    assert table.scope_names == ["global", "project/p"]
    table.records["doc"] = [7, 5, 6]
    asked = table.align(np.array([6, 9, 5]))
    assert asked.passes.tolist() == [True, False, True]
    ids = list_ids(asked.records)
    assert (ids[0], ids[2]) == (uid(3), uid(2))
    assert KINDS[asked.records["kind"][2]] == Kind.BUG
    assert asked.scope_names[asked.scopes[0]] == "project/p"
    assert not facts().align(np.array([6, 9])).passes.any()


def test_facts_that_were_not_read_in_time_pass_nothing_and_have_factors() -> None:
    nothing = facts()
    for table in (nothing, facts(memory(1))):
        aligned = table.align(np.array([7, 9], np.int64))
        assert aligned.passes.tolist() == [False, False]
        assert list_ids(aligned.records) == [uid(0), uid(0)]
        question = parse_question("why?", NOW, frozenset({"shop"}))
        factors = compute_factors(aligned, question, NOW)
        assert all(len(values) == 2 for values in factors.values())

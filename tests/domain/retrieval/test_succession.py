"""In every selection, what replaced or contradicts a memory comes before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.context.active_set import (
    ActiveSetEntry,
    ActiveSetLayer,
    LayerBudgets,
    select_entries,
)
from reverie.domain.core.memory import Memory, MemoryStatus
from reverie.domain.retrieval.answer import RankedHit, assemble_answer
from reverie.domain.retrieval.candidates import ScoredMemory, sort_memories
from reverie.domain.retrieval.ranking_facts import NO_SUCCESSOR, FloatArray
from reverie.domain.retrieval.selection import select_memories
from reverie.domain.retrieval.succession import map_successors, rank_successors_first
from tests.domain.retrieval.made_up_candidates import facts, memory, uid

WORDS = ("cache", "retry", "order", "ledger", "tag", "flag", "queue", "export")


@dataclass(frozen=True)
class Pool:
    """Memories by their positions, with scores, and which of them replaced which."""

    scores: FloatArray
    superseded_factors: FloatArray
    memories: Sequence[Memory]
    successors: Mapping[int, int]

    @property
    def ranked(self) -> list[ScoredMemory]:
        """The memories in the order of their scores, behind what replaced them."""
        ranked = rank(self.scores, self.successors, self.superseded_factors)
        return sort_memories(
            ScoredMemory(one.id, score) for one, score in zip(self.memories, ranked, strict=True)
        )

    @property
    def successor_ids(self) -> dict[UUID, UUID]:
        """What replaced which, by id."""
        memories = self.memories
        return {memories[old].id: memories[new].id for old, new in self.successors.items()}


def rank(
    scores: Sequence[float] | FloatArray,
    successors: Mapping[int, int],
    superseded_factors: Sequence[float] | FloatArray | None = None,
) -> list[float]:
    """The scores that memories have behind what replaced them."""
    positions = np.full(len(scores), -1)
    positions[list(successors)] = list(successors.values())
    factors = np.ones(len(scores)) if superseded_factors is None else superseded_factors
    return list(
        rank_successors_first(np.array(scores, float), positions, np.array(factors, float)).tolist()
    )


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Chains of memories among others: ids in any order, of any age, score and text."""
    count = draw(st.integers(2, 14))
    ids = draw(st.permutations(range(1, count + 1)))
    places = draw(st.permutations(range(count)))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    successors: dict[int, int] = {}
    start = 0
    for length in lengths:
        successors |= dict(pairwise(places[start : start + length]))
        start += length
    for old, new in draw(st.lists(st.tuples(st.sampled_from(places), st.sampled_from(places)))):
        # Several memories may be replaced by one; what is later has no successor that is earlier.
        if places.index(old) < places.index(new):
            successors.setdefault(old, new)
    scores, factors, memories = [], [], []
    for place in range(count):
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
        scores.append(draw(st.sampled_from((0.0, 0.0, 0.3)) | st.floats(0, 1)))
        is_whole = draw(st.booleans())
        is_superseded = place in successors and is_whole
        factors.append(0.5 if is_superseded else 1.0)
        memories.append(
            memory(
                ids[place],
                content=" ".join(words),
                content_hash=f"{place:064x}",
                status=MemoryStatus.SUPERSEDED if is_superseded else MemoryStatus.ACTIVE,
            )
        )
    return Pool(np.array(scores), np.array(factors), memories, successors)


def check_order(ids: Sequence[UUID], successors: Mapping[UUID, UUID]) -> None:
    """Whatever replaced one of these, however indirectly, stands before it."""
    for place, memory_id in enumerate(ids):
        newer = successors.get(memory_id)
        while newer:
            assert newer in ids[:place], (ids, successors)
            newer = successors.get(newer)


@given(pools())
def test_a_successor_ranks_first_and_takes_the_higher_score(pool: Pool) -> None:
    before = pool.scores.copy()
    after = rank(pool.scores, pool.successors, pool.superseded_factors)
    assert (pool.scores == before).all()
    check_order([one.id for one in pool.ranked], pool.successor_ids)
    for old, new in pool.successors.items():
        assert after[new] > after[old]
        assert new in pool.successors or after[new] >= before[old]
    untouched = {*range(len(before))} - {*pool.successors} - {*pool.successors.values()}
    for place in untouched:
        assert after[place] == before[place]


@given(pools(), st.integers(0, 13), st.integers(0, 13))
def test_memories_that_replace_each_other_in_a_circle_keep_scores(
    pool: Pool, first: int, last: int
) -> None:
    """That is never written, and must end all the same."""
    count = len(pool.scores)
    circle = {**pool.successors, first % count: last % count, last % count: first % count}
    after = rank(pool.scores, circle, pool.superseded_factors)
    assert all(np.isfinite(score) and score >= 0 for score in after)


@given(pools(), st.integers(1, 6), st.booleans(), st.none() | st.integers(0, 30))
def test_an_answer_holds_what_replaced_a_memory_before_it(
    pool: Pool, limit: int, with_names: bool, budget: int | None
) -> None:
    names = ("cache",) if with_names else ()
    memories = {one.id: one for one in pool.memories}
    contents = {one.id: one.content for one in pool.memories}
    for budget_tokens in {None, budget}:
        selection = select_memories(
            pool.ranked,
            contents,
            pool.successor_ids,
            names,
            limit,
            with_spares=budget_tokens is not None,
        )
        hits = [RankedHit(scored, memories[scored.id]) for scored in selection.memories]
        answer = assemble_answer(
            hits, (), (), limit, budget_tokens, lambda text: len(text.split()), pool.successor_ids
        )
        assert len(answer.hits) <= limit
        check_order([hit.item.id for hit in answer.hits], pool.successor_ids)


@given(pools(), st.integers(0, 60))
def test_an_agent_is_given_no_memory_without_what_replaced_it(pool: Pool, total: int) -> None:
    memories = {one.id: one for one in pool.memories}
    entries = [
        ActiveSetEntry(
            id=scored.id,
            layer=ActiveSetLayer.ON_DEMAND,
            line=memories[scored.id].content,
            text=memories[scored.id].content,
            scope="project/shop",
            weight=scored.score,
            reason="found by words",
            fingerprint=0,
            memory=cast("Any", object()),
            successor=pool.successor_ids.get(scored.id),
        )
        for scored in pool.ranked
    ]
    selection = select_entries(
        {ActiveSetLayer.ON_DEMAND: entries},
        LayerBudgets(0, 0, total),
        lambda text: len(text.split()),
    )
    check_order([entry.id for entry in selection.entries], pool.successor_ids)


def test_a_superseded_memory_is_moved_below_all_its_successors() -> None:
    after = rank([0.9, 0.8, 0.3, 0.5], {0: 1, 1: 2})
    assert sorted(range(4), key=lambda place: -after[place]) == [2, 1, 0, 3]
    assert after[2] == 0.9
    assert rank([0.9, 0.8, 0.3, 0.5], {}) == [0.9, 0.8, 0.3, 0.5]


def test_a_superseded_memory_without_score_stays_in_the_results() -> None:
    old, new = rank([0.0, 0.0], {0: 1})
    assert new > old >= 0


def test_a_successor_of_another_scale_takes_the_place_of_what_it_replaced() -> None:
    old, other, new = rank([0.5, 0.4, 0.1], {0: 2})
    assert (new, other) == (0.5, 0.4)
    assert new > old > other
    assert rank([0.5, 0.4, 0.1], {0: 2}, [0.5, 1, 1])[2] == 1.0


def test_the_successors_of_records_are_those_that_are_there() -> None:
    records = facts(*(memory(n) for n in (1, 2, 3, 4))).records
    records["doc"] = [10, 20, 30, 40]
    records["successor"] = [30, NO_SUCCESSOR, 99, 10]
    assert map_successors(records) == {uid(1): uid(3), uid(4): uid(1)}
    assert map_successors(records[1:2]) == {}

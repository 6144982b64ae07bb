"""In every selection, what replaced or contradicts a memory comes before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.context.active_set import (
    ActiveSetEntry,
    ActiveSetLayer,
    LayerBudgets,
    select_entries,
)
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import MemoryStatus
from reverie.domain.retrieval.answer import RankedHit, assemble_answer
from reverie.domain.retrieval.candidates import CandidateFacts, RecallCandidate, ScoredMemory
from reverie.domain.retrieval.selection import select_memories
from reverie.domain.retrieval.succession import rank_successors_first

NOW = datetime(2025, 6, 1, tzinfo=UTC)
WORDS = ("cache", "retry", "order", "ledger", "tag", "flag", "queue", "export")


@dataclass(frozen=True)
class Pool:
    """Memories with scores, and which of them replaced which."""

    scored: Sequence[ScoredMemory]
    candidates: Mapping[UUID, RecallCandidate]
    successors: Mapping[UUID, UUID]


@dataclass(frozen=True)
class Text:
    id: UUID
    content: str


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Chains of memories among others: ids in any order, of any age, score and text."""
    count = draw(st.integers(2, 14))
    ids = [UUID(int=n) for n in draw(st.permutations(range(1, count + 1)))]
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    successors: dict[UUID, UUID] = {}
    start = 0
    for length in lengths:
        chain = ids[start : start + length]
        successors |= dict(pairwise(chain))
        start += length
    scored, candidates = [], {}
    for number, memory_id in enumerate(ids):
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
        score = draw(st.sampled_from((0.0, 0.0, 0.3)) | st.floats(0, 1))
        is_whole = draw(st.booleans())
        factors = {"superseded": 0.5} if memory_id in successors and is_whole else {}
        scored.append(ScoredMemory(memory_id, score, factors=factors))
        facts = CandidateFacts(
            id=memory_id,
            kind=Kind.DECISION,
            tier=Tier.WARM,
            status=MemoryStatus.SUPERSEDED if factors else MemoryStatus.ACTIVE,
            scope="project/shop",
            confidence=0.8,
            pinned=False,
            created_at=NOW,
            content_hash=bytes([number]),
            superseded_by=successors.get(memory_id),
        )
        candidates[memory_id] = RecallCandidate(facts, " ".join(words))
    ranked = sorted(scored, key=lambda memory: (-memory.score, memory.id))
    return Pool(ranked, candidates, successors)


def check_order(ids: Sequence[UUID], successors: Mapping[UUID, UUID]) -> None:
    """Whatever replaced one of these, however indirectly, stands before it."""
    for place, memory_id in enumerate(ids):
        newer = successors.get(memory_id)
        while newer:
            assert newer in ids[:place], (ids, successors)
            newer = successors.get(newer)


@given(pools())
def test_a_successor_ranks_first_and_takes_the_higher_score(pool: Pool) -> None:
    before = {memory.id: memory.score for memory in pool.scored}
    ranked = rank_successors_first(pool.scored, pool.successors)
    assert {memory.id for memory in ranked} == before.keys()
    check_order([memory.id for memory in ranked], pool.successors)
    after = {memory.id: memory.score for memory in ranked}
    for memory_id, newer in pool.successors.items():
        assert after[newer] > after[memory_id]
        assert newer in pool.successors or after[newer] >= before[memory_id]


@given(pools(), st.integers(1, 6), st.booleans(), st.none() | st.integers(0, 30))
def test_an_answer_holds_what_replaced_a_memory_before_it(
    pool: Pool, limit: int, with_names: bool, budget: int | None
) -> None:
    names = ("cache",) if with_names else ()
    for budget_tokens in {None, budget}:
        selection = select_memories(
            pool.scored,
            pool.candidates,
            names,
            limit,
            with_spares=budget_tokens is not None,
        )
        hits = [
            RankedHit(memory, cast("Any", Text(memory.id, pool.candidates[memory.id].content)))
            for memory in selection.memories
        ]
        answer = assemble_answer(
            hits, (), (), limit, budget_tokens, lambda text: len(text.split()), pool.successors
        )
        assert len(answer.hits) <= limit
        check_order([hit.item.id for hit in answer.hits], pool.successors)


@given(pools(), st.integers(0, 60))
def test_an_agent_is_given_no_memory_without_what_replaced_it(pool: Pool, total: int) -> None:
    ranked = rank_successors_first(pool.scored, pool.successors)
    entries = [
        ActiveSetEntry(
            id=memory.id,
            layer=ActiveSetLayer.ON_DEMAND,
            line=pool.candidates[memory.id].content,
            text=pool.candidates[memory.id].content,
            scope="project/shop",
            weight=memory.score,
            reason="found by words",
            fingerprint=0,
            memory=cast("Any", object()),
            successor=pool.successors.get(memory.id),
        )
        for memory in ranked
    ]
    selection = select_entries(
        {ActiveSetLayer.ON_DEMAND: entries},
        LayerBudgets(0, 0, total),
        lambda text: len(text.split()),
    )
    check_order([entry.id for entry in selection.entries], pool.successors)


def test_a_successor_of_another_scale_takes_the_place_of_what_it_replaced() -> None:
    old, new, other = (UUID(int=n) for n in (1, 2, 3))
    found = [ScoredMemory(old, 0.5), ScoredMemory(other, 0.4), ScoredMemory(new, 0.1)]
    ranked = rank_successors_first(found, {old: new})
    assert [memory.id for memory in ranked] == [new, old, other]
    assert ranked[0].factors == {"successor": 5.0}
    halved = [found[0]._replace(factors={"superseded": 0.5}), *found[1:]]
    assert rank_successors_first(halved, {old: new})[0].score == 1.0

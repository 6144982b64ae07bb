"""Only candidates that could still reach the result are loaded."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import MemoryStatus
from reverie.domain.retrieval.candidates import CandidateFacts, RecallCandidate, ScoredMemory
from reverie.domain.retrieval.question_parsing import ParsedQuestion, parse_question
from reverie.domain.retrieval.scoring import (
    NAME_FACTOR,
    LoadPlan,
    compute_factors,
    compute_max_factor,
    compute_score_threshold,
    plan_loading,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PLAIN = parse_question("pool", NOW)
NAMING = parse_question("how is the pool_size set?", NOW)
ALONE = parse_question("pool_size", NOW)


def _facts(number: int, text: bytes = b"", rank: float = 0.0) -> CandidateFacts:
    kind, tier, status = Kind.IDENTITY, Tier.HOT, MemoryStatus.ACTIVE
    hashed = text or bytes([number])
    return CandidateFacts(
        UUID(int=number), kind, tier, status, "global", 1.0, True, NOW, hashed, rank=rank
    )


def _scored(*scores: float, arm: str = "meaning") -> list[ScoredMemory]:
    return [ScoredMemory(UUID(int=n), score, {arm: n}) for n, score in enumerate(scores, start=1)]


def _numbers(plan: LoadPlan) -> tuple[list[int], list[int], list[int]]:
    to_load, to_load_if_named, to_skip = ([memory.int for memory in part] for part in plan)
    return to_load, to_load_if_named, to_skip


def _plan(memories: list[ScoredMemory], share: float, question: ParsedQuestion) -> LoadPlan:
    """The plan for a threshold that is a share of the highest product of factors."""
    threshold = share * compute_max_factor(question)
    return plan_loading(memories, threshold, question, {UUID(int=3): 2.0})


def test_the_threshold_is_the_score_of_the_last_needed_distinct_text() -> None:
    known = {
        one.id: RecallCandidate(one, "") for one in (_facts(1, b"a"), _facts(2, b"a"), _facts(3))
    }
    weighed = _scored(0.9, 0.8, 0.5)
    assert compute_score_threshold(weighed, known, 2) == 0.5
    assert compute_score_threshold(weighed, known, 3) == 0
    assert _numbers(_plan(weighed, 0, PLAIN)) == ([1, 2, 3], [], [])


def test_no_candidate_that_could_reach_the_threshold_is_pruned() -> None:
    best = 1.0
    for factor in compute_factors(_facts(1, rank=1.0), PLAIN, NOW).values():
        best *= factor
    assert best <= compute_max_factor(PLAIN)
    assert _numbers(_plan(_scored(0.5, 0.49, 0.26, 0.25), 0.5, PLAIN)) == ([1, 3], [], [2, 4])


def test_candidates_that_only_a_name_could_lift_are_loaded_if_they_hold_it() -> None:
    part = _scored(0.5, 0.49, 0.2, 0.51 / NAME_FACTOR, 0.49 / NAME_FACTOR, arm="words")
    assert _numbers(_plan(part, 0.5, NAMING)) == ([1], [2, 3, 4], [5])
    assert _numbers(_plan(part, 0.5, PLAIN)) == ([1], [], [2, 3, 4, 5])
    by_meaning = [one._replace(arm_ranks={"meaning": 1}) for one in part]
    assert _numbers(_plan(by_meaning, 0.5, NAMING)) == ([1], [], [2, 3, 4, 5])


def test_candidates_found_by_words_are_loaded_for_a_question_of_names() -> None:
    assert ALONE.only_names
    found = [one._replace(arm_ranks={"words": 1}) if one.id.int > 20 else one for one in
             _scored(*(0.9**n for n in range(30)))]  # fmt: skip
    asked = _plan(found, 0.5, ALONE)
    assert {memory.int for memory in asked.to_load} >= {1, 2, 3, *range(21, 31)}
    assert len(asked.to_load) < 20
    assert not asked.to_load_if_named

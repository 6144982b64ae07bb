"""Decides which candidates can still reach the result and must be loaded. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.retrieval.ranking import ScoredMemory
from reverie.domain.retrieval.score_boosts import NAME_FACTOR, compute_max_factor
from reverie.store.search.search import RecallCandidate


class LoadPlan(NamedTuple):
    """What is looked up:

    `to_load` as it is, `to_load_if_named` only where it holds a name; `to_skip` is not.
    """

    to_load: list[ScoredMemory]
    to_load_if_named: list[ScoredMemory]
    to_skip: list[ScoredMemory]


def split_prefetched(
    memories: Sequence[ScoredMemory], prefetched_ids: Container[UUID]
) -> tuple[list[ScoredMemory], list[ScoredMemory]]:
    """What was looked up ahead, and the rest."""
    prefetched = [memory for memory in memories if memory.id in prefetched_ids]
    return prefetched, [memory for memory in memories if memory.id not in prefetched_ids]


def compute_score_threshold(
    scored: Sequence[ScoredMemory], candidates: Mapping[UUID, RecallCandidate], count: int
) -> float:
    """The score of the last of the best `count` different texts, 0 while there are too few."""
    best_by_text: dict[bytes, float] = {}
    for memory in scored:
        text = candidates[memory.id].facts.content_hash
        best_by_text[text] = max(memory.score, best_by_text.get(text, 0.0))
    scores = sorted(best_by_text.values(), reverse=True)[:count]
    return scores[-1] if len(scores) == count else 0.0


def plan_loading(
    rest: Sequence[ScoredMemory],
    threshold: float,
    parsed_question: ParsedQuestion,
    missing_vector_factor: Callable[[ScoredMemory], float],
) -> LoadPlan:
    """Parts the `rest` by whether it can come to the `threshold` at its best; 0 is for all of it.

    `missing_vector_factor`: by what a memory is made good that has no vectors yet. What words did
    not find holds no name of the question. Where a question asks by names alone, what holds one
    comes before all else, and so does what took its place: whatever words found is looked up.
    """
    plan, max_factor = LoadPlan([], [], []), compute_max_factor(parsed_question)
    for memory in rest:
        max_score = memory.score * max_factor * missing_vector_factor(memory)
        found_by_words = "words" in memory.arm_ranks
        if max_score >= threshold or (parsed_question.only_names and found_by_words):
            plan.to_load.append(memory)
        elif parsed_question.names and max_score * NAME_FACTOR >= threshold and found_by_words:
            plan.to_load_if_named.append(memory)
        else:
            plan.to_skip.append(memory)
    return plan

"""Scores candidates: factors besides relevance, and the order of named memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from reverie.domain.access.scopes import project_of_scope
from reverie.domain.core.confidence import HALF_LIVES, HalfLives, current_confidence
from reverie.domain.core.kinds import Tier
from reverie.domain.core.memory import MemoryStatus
from reverie.domain.retrieval.candidates import (
    CandidateFacts,
    RecallCandidate,
    ScoredMemory,
    apply_factors,
    sort_by_score,
)
from reverie.domain.retrieval.exact_name_match import contains_name
from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.retrieval.speakers import compute_speaker_factor
from reverie.domain.retrieval.succession import DEMOTION_FACTOR

STALENESS_WEIGHT = 0.5
SUPERSEDED_FACTOR = 0.5
PERIOD_FACTOR = 1.15
KIND_FACTOR = 1.1
PROJECT_FACTOR = 1.1
PHRASE_FACTOR = 1.3
NAME_FACTOR = 1.7
"""Models split a name into pieces with other meanings, so only words can find it."""
PINNED_FACTOR = 1.05
CENTRALITY_WEIGHT = 0.1
"""The addition to the score of the best linked memory of a tenant."""
TIER_FACTORS = {Tier.HOT: 1.03, Tier.WARM: 1.0, Tier.COLD: 0.97}


def compute_factors(
    facts: CandidateFacts,
    question: ParsedQuestion,
    now: datetime,
    half_lives: HalfLives = HALF_LIVES,
) -> dict[str, float]:
    """Computes each factor of the facts by its name; some that are 1 are left out.

    Age counts once, in `confidence`.
    """
    factors = {"confidence": current_confidence(facts, now, half_lives)}
    if facts.staleness:
        factors["staleness"] = 1 - STALENESS_WEIGHT * facts.staleness
    if facts.status is MemoryStatus.SUPERSEDED:
        factors["superseded"] = SUPERSEDED_FACTOR
    factors["tier"] = PINNED_FACTOR if facts.pinned else TIER_FACTORS[facts.tier]
    if facts.rank:
        factors["centrality"] = 1 + CENTRALITY_WEIGHT * facts.rank
    if question.time_range and question.time_range.contains(facts.valid_from or facts.created_at):
        factors["period"] = PERIOD_FACTOR
    if question.projects and project_of_scope(facts.scope) in question.projects:
        factors["project"] = PROJECT_FACTOR
    if facts.kind in question.preferred_kinds:
        factors["kind"] = KIND_FACTOR
    return factors


def compute_text_factors(
    content: str, question: ParsedQuestion, speakers: Collection[str] = ()
) -> dict[str, float]:
    """Computes each factor of the text by its name.

    `speakers`: the people of the question who speak.
    """
    factors = {}
    if question.phrases:
        folded = " ".join(content.split()).casefold()
        has_all = all(phrase.casefold() in folded for phrase in question.phrases)
        factors["phrase"] = PHRASE_FACTOR if has_all else 1.0
    if question.names:
        factors["name"] = NAME_FACTOR if contains_name(content, question.names) else 1.0
    if speakers:
        factors["speaker"] = compute_speaker_factor(content, speakers)
    return factors


def compute_max_factor(question: ParsedQuestion) -> float:
    """The highest product of factors that a memory can have, without the name factor."""
    return (
        max(PINNED_FACTOR, *TIER_FACTORS.values())
        * (1 + CENTRALITY_WEIGHT)
        * (PERIOD_FACTOR if question.time_range else 1.0)
        * (KIND_FACTOR if question.preferred_kinds else 1.0)
        * (PROJECT_FACTOR if question.projects else 1.0)
        * (PHRASE_FACTOR if question.phrases else 1.0)
    )


def compute_score_threshold(
    scored: Sequence[ScoredMemory], candidates: Mapping[UUID, RecallCandidate], count: int
) -> float:
    """The score of the last of the best `count` different texts; 0 while there are fewer."""
    best_by_text: dict[bytes, float] = {}
    for memory in scored:
        text = candidates[memory.id].facts.content_hash
        best_by_text[text] = max(memory.score, best_by_text.get(text, 0.0))
    scores = sorted(best_by_text.values(), reverse=True)[:count]
    return scores[-1] if len(scores) == count else 0.0


class LoadPlan(NamedTuple):
    """Candidates to load, to load only if they contain a name, and to skip."""

    to_load: list[UUID]
    to_load_if_named: list[UUID]
    to_skip: list[UUID]


def plan_loading(
    memories: Iterable[ScoredMemory],
    threshold: float,
    question: ParsedQuestion,
    boosts: Mapping[UUID, float],
) -> LoadPlan:
    """Decides which memories can still reach the threshold and must be loaded; 0 is all of them.

    `boosts`: the factors of memories that have no vectors yet. Only memories that the word arm
    found can contain a name. If a question consists of names only, their holders and the memories
    that replaced them rank first. All that the word arm found are then loaded.
    """
    plan, max_factor = LoadPlan([], [], []), compute_max_factor(question)
    for memory in memories:
        max_score = memory.score * max_factor * boosts.get(memory.id, 1.0)
        found_by_words = "words" in memory.arm_ranks
        if max_score >= threshold or (question.only_names and found_by_words):
            plan.to_load.append(memory.id)
        elif question.names and found_by_words and max_score * NAME_FACTOR >= threshold:
            plan.to_load_if_named.append(memory.id)
        else:
            plan.to_skip.append(memory.id)
    return plan


def boost_named(
    memories: Sequence[ScoredMemory], named_ids: Collection[UUID]
) -> list[ScoredMemory]:
    """Ranks all of `named_ids` above the rest, whose scores are scaled down by one factor.

    A score of 0 stays: there is nothing below it.
    """
    if not named_ids:
        return list(memories)
    lowest_named = min(
        (memory.score for memory in memories if memory.id in named_ids and memory.score > 0),
        default=0.0,
    )
    highest_other = max(
        (memory.score for memory in memories if memory.id not in named_ids), default=0.0
    )
    if not lowest_named or highest_other < lowest_named:
        return list(memories)
    factor = {"named": DEMOTION_FACTOR * lowest_named / highest_other}
    return sort_by_score(
        memory if memory.id in named_ids else apply_factors(memory, factor) for memory in memories
    )

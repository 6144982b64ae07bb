"""Scores candidates: factors besides relevance, and the order of named memories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from reverie.domain.access.scopes import project_of_scope
from reverie.domain.core.confidence import (
    DEFAULT_DECAY,
    ORPHAN_AFTER_DAYS,
    ORPHAN_RATE,
    SUPERSEDED_RATE,
    DecayPolicy,
)
from reverie.domain.core.kinds import Tier
from reverie.domain.retrieval.candidates import ScoredMemory, apply_factors, sort_memories
from reverie.domain.retrieval.exact_name_match import contains_name
from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.retrieval.ranking_facts import (
    KINDS,
    LINKED,
    NO_TIME,
    PINNED,
    SUPERSEDED,
    TIERS,
    FactRecords,
    FactTable,
    FloatArray,
    IntArray,
    encode_moment,
    has_flag,
)
from reverie.domain.retrieval.speakers import compute_speaker_factor
from reverie.domain.retrieval.succession import DEMOTION_FACTOR

MICROSECONDS_PER_DAY = 86_400_000_000
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
"""The addition to the score of the best linked memory of a scope."""
TIER_FACTORS = {Tier.HOT: 1.03, Tier.WARM: 1.0, Tier.COLD: 0.97}


def compute_confidences(
    records: FactRecords, now: datetime, decay: DecayPolicy = DEFAULT_DECAY
) -> FloatArray:
    """The confidence of each memory at `now`, as `current_confidence` computes it."""
    used = np.maximum(records["confirmed"], records["used"])
    last = np.maximum(records["created"], used)
    days = np.maximum(encode_moment(now) - last, 0) / MICROSECONDS_PER_DAY
    orphan_days = np.maximum(days - ORPHAN_AFTER_DAYS, 0.0)
    days += np.where(has_flag(records, LINKED), 0.0, (ORPHAN_RATE - 1) * orphan_days)
    days *= np.where(records["status"] == SUPERSEDED, SUPERSEDED_RATE, 1.0)
    kind_half_lives = np.array(
        [np.inf if decay.is_lasting(kind) else decay.half_lives[kind] for kind in KINDS]
    )[records["kind"]]
    kind_half_lives[has_flag(records, PINNED)] = np.inf
    undecayed = np.minimum(
        1.0, records["confidence"].astype(np.float64) + records["boost"].astype(np.float64)
    )
    decayed: FloatArray = undecayed * 0.5 ** (days / kind_half_lives)
    return np.maximum(np.minimum(decay.floor, undecayed), decayed)


def compute_factors(
    facts: FactTable,
    question: ParsedQuestion,
    now: datetime,
    decay: DecayPolicy = DEFAULT_DECAY,
) -> dict[str, FloatArray]:
    """Computes each factor of the facts by its name; some that are 1 for all are left out.

    Age counts once, in `confidence`.
    """
    records = facts.records
    staleness, rank = (records[name].astype(np.float64) for name in ("staleness", "rank"))
    tiers = np.array([TIER_FACTORS[tier] for tier in TIERS])[records["tier"]]
    factors = {
        "confidence": compute_confidences(records, now, decay),
        "staleness": 1 - STALENESS_WEIGHT * staleness,
        "superseded": np.where(records["status"] == SUPERSEDED, SUPERSEDED_FACTOR, 1.0),
        "tier": np.where(has_flag(records, PINNED), PINNED_FACTOR, tiers),
        "centrality": 1 + CENTRALITY_WEIGHT * rank,
    }
    if question.time_range:
        valid_from, created = records["valid_from"], records["created"]
        moments = np.where(valid_from == NO_TIME, created, valid_from)
        is_within = moments >= encode_moment(question.time_range.since)
        is_within &= moments < encode_moment(question.time_range.until)
        factors["period"] = np.where(is_within, PERIOD_FACTOR, 1.0)
    if question.projects:
        is_named = [project_of_scope(name) in question.projects for name in facts.scope_names]
        factors["project"] = np.where(np.array(is_named)[facts.scopes], PROJECT_FACTOR, 1.0)
    if question.preferred_kinds:
        is_preferred = np.array([kind in question.preferred_kinds for kind in KINDS])
        factors["kind"] = np.where(is_preferred[records["kind"]], KIND_FACTOR, 1.0)
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


def compute_max_text_factor(question: ParsedQuestion) -> float:
    """The highest product of text factors that a memory can have, without the name factor."""
    return PHRASE_FACTOR if question.phrases else 1.0


def choose_distinct(order: IntArray, hashes: NDArray[np.uint64], count: int) -> IntArray:
    """The first of `order` until there are `count` different texts."""
    _, first = np.unique(hashes[order], return_index=True)
    return order if len(first) <= count else order[: int(np.sort(first)[count - 1]) + 1]


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
    return sort_memories(
        memory if memory.id in named_ids else apply_factors(memory, factor) for memory in memories
    )

"""Score factors of a candidate besides its relevance: confidence, staleness, tier, time, kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from reverie.domain.access.scopes import project_of_scope
from reverie.domain.core.confidence import HALF_LIVES, HalfLives, current_confidence
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import MemoryStatus, MemoryUsage
from reverie.domain.retrieval.exact_name_match import contains_name
from reverie.domain.retrieval.question_parsing import ParsedQuestion

NEVER_USED = MemoryUsage()
STALENESS_WEIGHT = 0.5
SUPERSEDED_FACTOR = 0.5
PERIOD_FACTOR = 1.15
KIND_FACTOR = 1.1
PROJECT_FACTOR = 1.1
PHRASE_FACTOR = 1.3
NAME_FACTOR = 1.7
"""Models break a name into pieces that say something else, so that words alone know it."""
PINNED_FACTOR = 1.05
CENTRALITY_WEIGHT = 0.1
"""What being the best linked memory of a tenant adds."""
TIER_FACTORS = {Tier.HOT: 1.03, Tier.WARM: 1.0, Tier.COLD: 0.97}


class CandidateFacts(NamedTuple):
    """What the store knows of a candidate, without its text.

    `rank`: its PageRank as a share of the tenant's highest, 0 where it has no edges. `use`: its
    use before this hour, so that a recall does not change the order of the same recall after it.
    """

    id: UUID
    kind: Kind
    tier: Tier
    status: MemoryStatus
    scope: str
    confidence: float
    pinned: bool
    created_at: datetime
    content_hash: bytes
    session: UUID | None = None
    confirmed_at: datetime | None = None
    valid_from: datetime | None = None
    superseded_by: UUID | None = None
    linked: bool = True
    staleness: float = 0.0
    rank: float = 0.0
    use: MemoryUsage = NEVER_USED


def compute_factors(
    facts: CandidateFacts,
    question: ParsedQuestion,
    now: datetime,
    half_lives: HalfLives = HALF_LIVES,
) -> dict[str, float]:
    """Each factor by its name, less some that are 1; time counts once, in `confidence`."""
    factors = {"confidence": current_confidence(facts, now, half_lives)}
    if facts.staleness:
        factors["staleness"] = 1 - STALENESS_WEIGHT * facts.staleness
    if facts.status is MemoryStatus.SUPERSEDED:
        factors["superseded"] = SUPERSEDED_FACTOR
    factors["tier"] = PINNED_FACTOR if facts.pinned else TIER_FACTORS[facts.tier]
    if facts.rank:
        factors["centrality"] = 1 + CENTRALITY_WEIGHT * facts.rank
    if question.time_range and _is_in_period(facts, question):
        factors["period"] = PERIOD_FACTOR
    if question.projects and project_of_scope(facts.scope) in question.projects:
        factors["place"] = PROJECT_FACTOR
    if facts.kind in question.preferred_kinds:
        factors["kind"] = KIND_FACTOR
    return factors


def compute_max_factor(question: ParsedQuestion) -> float:
    """The most that the factors of any memory can come to, but for a name that it holds."""
    return (
        max(PINNED_FACTOR, *TIER_FACTORS.values())
        * (1 + CENTRALITY_WEIGHT)
        * (PERIOD_FACTOR if question.time_range else 1.0)
        * (KIND_FACTOR if question.preferred_kinds else 1.0)
        * (PROJECT_FACTOR if question.projects else 1.0)
        * (PHRASE_FACTOR if question.phrases else 1.0)
    )


def compute_phrase_factor(content: str, phrases: Sequence[str]) -> float:
    """The factor of a text: more than 1 where it holds all that was asked for in quotes."""
    if not phrases:
        return 1.0
    folded = " ".join(content.split()).casefold()
    return PHRASE_FACTOR if all(phrase.casefold() in folded for phrase in phrases) else 1.0


def compute_name_factor(content: str, names: Sequence[str]) -> float:
    """The factor of a text: more than 1 where it has one of the names, in whatever case."""
    return NAME_FACTOR if contains_name(content, names) else 1.0


def _is_in_period(facts: CandidateFacts, question: ParsedQuestion) -> bool:
    time_range = question.time_range
    return time_range is not None and time_range.contains(facts.valid_from or facts.created_at)

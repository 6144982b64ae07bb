"""What a memory is worth to a question beside its likeness to it: factors of its score. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from reverie.domain.confidence import HALF_LIVES, HalfLives, present
from reverie.domain.kinds import Kind, Tier
from reverie.domain.memory import Status, Use
from reverie.domain.named import holds_one
from reverie.domain.question import Reading
from reverie.domain.scopes import project_of

UNUSED = Use()
STALE_WEIGHT = 0.5
SUPERSEDED_WEIGHT = 0.5
IN_PERIOD = 1.15
WANTED_KIND = 1.1
IN_PLACE = 1.1
HOLDS_PHRASE = 1.3
HOLDS_NAME = 1.7
"""Models break a name into pieces that say something else, so that words alone know it."""
PINNED = 1.05
CENTRALITY = 0.1
"""What being the best linked memory of a tenant adds."""
TIERS = {Tier.HOT: 1.03, Tier.WARM: 1.0, Tier.COLD: 0.97}


class Facts(NamedTuple):
    """What the store knows of a candidate, without its text.

    `rank`: its PageRank as a share of the tenant's highest, 0 where it has no edges. `use`: its
    use before this hour, so that a recall does not change the order of the same recall after it.
    """

    id: UUID
    kind: Kind
    tier: Tier
    status: Status
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
    use: Use = UNUSED


def factors(
    facts: Facts, reading: Reading, now: datetime, lives: HalfLives = HALF_LIVES
) -> dict[str, float]:
    """Each factor by its name, less some that are 1; time counts once, in `confidence`."""
    found = {"confidence": present(facts, now, lives)}
    if facts.staleness:
        found["staleness"] = 1 - STALE_WEIGHT * facts.staleness
    if facts.status is Status.SUPERSEDED:
        found["superseded"] = SUPERSEDED_WEIGHT
    found["tier"] = PINNED if facts.pinned else TIERS[facts.tier]
    if facts.rank:
        found["centrality"] = 1 + CENTRALITY * facts.rank
    if reading.period and _in_period(facts, reading):
        found["period"] = IN_PERIOD
    if reading.places and project_of(facts.scope) in reading.places:
        found["place"] = IN_PLACE
    if facts.kind in reading.wants:
        found["kind"] = WANTED_KIND
    return found


def most(reading: Reading) -> float:
    """The most that the factors of any memory can come to, but for a name that it holds."""
    return (
        max(PINNED, *TIERS.values())
        * (1 + CENTRALITY)
        * (IN_PERIOD if reading.period else 1.0)
        * (WANTED_KIND if reading.wants else 1.0)
        * (IN_PLACE if reading.places else 1.0)
        * (HOLDS_PHRASE if reading.phrases else 1.0)
    )


def holds_phrase(content: str, phrases: Sequence[str]) -> float:
    """The factor of a text: more than 1 where it holds all that was asked for in quotes."""
    if not phrases:
        return 1.0
    folded = " ".join(content.split()).casefold()
    return HOLDS_PHRASE if all(one.casefold() in folded for one in phrases) else 1.0


def holds_name(content: str, names: Sequence[str]) -> float:
    """The factor of a text: more than 1 where it has one of the names, in whatever case."""
    return HOLDS_NAME if holds_one(content, names) else 1.0


def _in_period(facts: Facts, reading: Reading) -> bool:
    period = reading.period
    return period is not None and period.holds(facts.valid_from or facts.created_at)

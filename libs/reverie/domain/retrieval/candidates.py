"""Values of a search: what the arms found, what is known of a candidate, and its score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import MemoryStatus, MemoryUsage

NEVER_USED = MemoryUsage()
EMPTY_MAPPING: Mapping[str, Any] = {}


class SearchHit(NamedTuple):
    """A memory that an arm found, with that arm's own score.

    `whole`: the vectors of the memory exist; only the word arm reports it. `long`: the memory has
    several chunks; only the sparse arm reports it.
    """

    id: UUID
    score: float
    whole: bool = True
    long: bool = False


@dataclass(frozen=True)
class TurnHit:
    """A turn that the word arm found."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: datetime
    scope: str
    agent: str
    score: float


class NeighbourEdge(NamedTuple):
    """An open edge, seen from one memory of a list."""

    near: UUID
    far: UUID
    kind: str
    weight: float


class CandidateFacts(NamedTuple):
    """The stored facts of a candidate, without its text.

    `rank`: its PageRank as a share of the tenant's highest, 0 if it has no edges. `use`: its use
    before this hour, so that a recall does not change the order of the next one.
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


class RecallCandidate(NamedTuple):
    """A memory that may be answered: its facts and its text."""

    facts: CandidateFacts
    content: str


class NamedCandidates(NamedTuple):
    """Memories that are needed only if they may contain one of the names, which are normalized."""

    ids: Sequence[UUID] = ()
    names: Sequence[str] = ()


NO_NAMED_CANDIDATES = NamedCandidates()


class GraphHop(NamedTuple):
    """The path to a memory: the type of edge, the memory before it, and its score."""

    source: UUID
    kind: str
    contribution: float


class ScoredMemory(NamedTuple):
    """A memory with its score, the rank (from 1) at which each arm had it, and its hops.

    `raw_scores`: each arm's own score. `fused_score`: the score of all arms together. `factors`:
    the factors that multiplied the score.
    """

    id: UUID
    score: float
    arm_ranks: Mapping[str, int] = EMPTY_MAPPING
    raw_scores: Mapping[str, float] = EMPTY_MAPPING
    fused_score: float = 0.0
    hops: tuple[GraphHop, ...] = ()
    factors: Mapping[str, float] = EMPTY_MAPPING


class Rejection(NamedTuple):
    """Why a candidate is not in the answer, and which memory took its place if one did."""

    reason: str
    replaced_by: UUID | None = None


_get_id, _get_score = itemgetter(0), itemgetter(1)


def sort_by_score(memories: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    """Sorts by score, ties by id."""
    ranked = sorted(memories, key=_get_score, reverse=True)
    scores = list(map(_get_score, ranked))
    tied = [index for index, is_tied in enumerate(map(eq, scores, scores[1:])) if is_tied]
    next_index = 0
    for start in tied:
        # Ids compare slowly, and only those of one score have to.
        if start >= next_index:
            next_index = start + 2
            while next_index < len(scores) and scores[next_index] == scores[start]:
                next_index += 1
            ranked[start:next_index] = sorted(ranked[start:next_index], key=_get_id)
    return ranked


def apply_factors(memory: ScoredMemory, factors: Mapping[str, float]) -> ScoredMemory:
    """Multiplies the score by all factors and stores those other than 1 with it."""
    score = memory.score
    applied = dict(memory.factors)
    for name, factor in factors.items():
        if factor != 1.0:
            score *= factor
            applied[name] = round(factor, 4)
    return memory._replace(score=score, factors=applied)


def with_score(memory: ScoredMemory, score: float) -> ScoredMemory:
    """Returns it with another score; the factor `rerank` is the ratio of the change."""
    if memory.score in (0.0, score):
        return memory
    return memory._replace(
        score=score, factors={**memory.factors, "rerank": round(score / memory.score, 4)}
    )

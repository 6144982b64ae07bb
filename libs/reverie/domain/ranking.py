"""The order of what was found: arms fused, weighed by what each memory is. Pure.

Arms are fused by a weighted sum of their scores, each as a share of the arm's best. Unlike
reciprocal ranks these keep the distance between a good hit and a poor one, which confidence,
age and doubt are then weighed against.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from reverie.domain.confidence import HALF_LIVES, HalfLives, present
from reverie.domain.memory import Memory, Status

ARM_WEIGHTS: Mapping[str, float] = {"words": 0.5, "meaning": 0.5}
NEAR = 0.6
STALE_WEIGHT = 0.5
SUPERSEDED_WEIGHT = 0.5
HOP_WEIGHT = 0.4

EDGE_WEIGHTS: Mapping[str, float] = {
    "led_to": 1.0,
    "supersedes": 1.0,
    "contradicts": 0.9,
    "depends_on": 0.8,
    "part_of": 0.8,
    "relates_to": 0.7,
    "learned_in": 0.4,
    "touches": 0.0,
}


@dataclass(frozen=True)
class Found:
    """A memory with its fused score and the rank (from 1) at which each arm had it."""

    id: UUID
    score: float
    arms: Mapping[str, int] = field(default_factory=dict)


class Scored(Protocol):
    """What an arm found, with that arm's own score."""

    @property
    def id(self) -> UUID: ...
    @property
    def score(self) -> float: ...


class Edge(Protocol):
    """An edge seen from a memory that was found."""

    @property
    def near(self) -> UUID: ...
    @property
    def far(self) -> UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> float: ...


def fuse(arms: Mapping[str, Sequence[Scored]]) -> list[Found]:
    """What all arms found, each arm in its own order, best first; ties by id.

    A score is the weighted sum of what each arm gives as a share of its best.
    """
    shares: dict[UUID, float] = {}
    ranks: dict[UUID, dict[str, int]] = {}
    for name, hits in arms.items():
        for rank, (one, share) in enumerate(_shares(name, hits), start=1):
            shares[one] = shares.get(one, 0.0) + ARM_WEIGHTS[name] * share
            ranks.setdefault(one, {})[name] = rank
    return best_first(Found(one, share, ranks[one]) for one, share in shares.items())


def _shares(name: str, hits: Sequence[Scored]) -> list[tuple[UUID, float]]:
    """Each hit's score between the arm's base and its best, as 0..1.

    A cosine says little below that of a distant text, so the base of meaning is its last
    candidate, or 0.6 of the best where all candidates are near.
    """
    if not hits:
        return []
    best = hits[0].score
    base = min(hits[-1].score, NEAR * best) if name == "meaning" else 0.0
    return [(hit.id, (hit.score - base) / (best - base) if best > base else 1.0) for hit in hits]


def expand(found: Sequence[Found], edges: Iterable[Edge]) -> list[Found]:
    """Adds the neighbours of what was found: the best neighbour's score × edge × one hop.

    A memory that an arm found keeps at least its own score.
    """
    scores = {one.id: one for one in found}
    reached: dict[UUID, float] = {}
    for edge in edges:
        if edge.near not in scores:
            continue
        worth = scores[edge.near].score * edge.weight * EDGE_WEIGHTS.get(edge.kind, 0.5)
        reached[edge.far] = max(reached.get(edge.far, 0.0), worth * HOP_WEIGHT)
    new = [Found(far, worth, {"graph": 1}) for far, worth in reached.items()
           if far not in scores and worth > 0]  # fmt: skip
    return best_first([*found, *new])


def weigh(one: Found, memory: Memory, now: datetime, lives: HalfLives = HALF_LIVES) -> Found:
    """The score times what the memory is worth by itself: present confidence, doubt, status.

    Use counts from the next full hour on: a recall does not change the order of the same recall
    after it. A memory that has no vectors yet is judged by its words alone.
    """
    score = one.score / ARM_WEIGHTS["words"] if _unseen(one, memory) else one.score
    sure = present(memory, now, lives, memory.settled)
    worth = sure * (1 - STALE_WEIGHT * memory.staleness)
    if memory.status is Status.SUPERSEDED:
        worth *= SUPERSEDED_WEIGHT
    return Found(one.id, score * worth, one.arms)


def _unseen(one: Found, memory: Memory) -> bool:
    return "words" in one.arms and "meaning" not in one.arms and not memory.enriched


def best_first(found: Iterable[Found]) -> list[Found]:
    """By score, ties by id."""
    return sorted(found, key=lambda one: (-one.score, one.id))

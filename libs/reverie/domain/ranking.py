"""The order of what was found: arms fused, weighed by what each memory is. Pure.

Arms are fused by reciprocal rank (Cormack, Clarke & Büttcher 2009): 1 / (60 + rank), summed
over arms and divided by the most that could be reached, so that a score lies in 0..1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.memory import Memory, Status

RRF_K = 60
HALF_LIFE_DAYS = 30.0
FLOOR = 0.1
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


def fuse(arms: Mapping[str, Sequence[UUID]]) -> list[Found]:
    """The ids of all arms, each arm in its own order, best first; ties by id."""
    ranks: dict[UUID, dict[str, int]] = {}
    for name, ids in arms.items():
        for rank, one in enumerate(ids, start=1):
            ranks.setdefault(one, {}).setdefault(name, rank)
    most = max(len(arms), 1) / (RRF_K + 1)
    found = [
        Found(one, sum(1 / (RRF_K + rank) for rank in of.values()) / most, of)
        for one, of in ranks.items()
    ]
    return best_first(found)


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


def decay(kind: Kind, touched: datetime, now: datetime) -> float:
    """What time leaves of a memory's weight: half every 30 days, at least a tenth.

    Kinds that do not decay keep all of it.
    """
    if not TREATMENT[kind].decays:
        return 1.0
    days = max((now - touched).total_seconds(), 0.0) / 86_400
    return float(max(FLOOR, 0.5 ** (days / HALF_LIFE_DAYS)))


def weigh(one: Found, memory: Memory, now: datetime) -> Found:
    """The score times what the memory is worth by itself: confidence, age, doubt, status."""
    age = 1.0 if memory.pinned else decay(memory.kind, memory.updated_at, now)
    worth = memory.confidence * age * (1 - STALE_WEIGHT * memory.staleness)
    if memory.status is Status.SUPERSEDED:
        worth *= SUPERSEDED_WEIGHT
    return Found(one.id, one.score * worth, one.arms)


def best_first(found: Iterable[Found]) -> list[Found]:
    """By score, ties by id."""
    return sorted(found, key=lambda one: (-one.score, one.id))

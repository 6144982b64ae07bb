"""Values of a search: what the arms found, the candidates, and the score of a memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.retrieval.ranking_facts import BoolArray, FloatArray, IntArray, Numbers

EMPTY_MAPPING: Mapping[str, Any] = {}


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


@dataclass(frozen=True)
class ArmHits:
    """The memories that an arm found, by number, best first, with that arm's own scores.

    `long`: which memories have several passages; only the sparse arm reports it.
    """

    docs: IntArray
    scores: FloatArray
    long: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.docs)


NO_HITS = ArmHits(np.empty(0, np.int64), np.empty(0))


class NeighbourEdges(NamedTuple):
    """Open edges, each seen from one memory: its number, the neighbour's, kind, and weight.

    `kinds`: places in `EDGE_KINDS`.
    """

    near: IntArray
    far: IntArray
    kinds: NDArray[np.uint8]
    weights: FloatArray


EDGE_KINDS = tuple(EdgeKind)
NO_EDGES = NeighbourEdges(NO_HITS.docs, NO_HITS.docs, np.empty(0, np.uint8), NO_HITS.scores)


class GraphHops(NamedTuple):
    """Parts of scores that memories lent to neighbours: from which, to which, and how much."""

    sources: IntArray
    targets: IntArray
    kinds: NDArray[np.uint8]
    contributions: FloatArray


@dataclass(frozen=True)
class Candidates:
    """The memories that the arms and the graph found, by number, best first.

    `ranks`: by arm, the rank of each from 1, 0 if the arm did not find it. `raw_scores`: by arm,
    that arm's own score, NaN if it has none. `fused`: the score of all arms together.
    """

    docs: IntArray
    scores: FloatArray
    fused: FloatArray
    ranks: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    raw_scores: Mapping[str, FloatArray] = field(default_factory=dict)
    hops: tuple[GraphHops, ...] = ()

    def __len__(self) -> int:
        return len(self.docs)

    def take(self, order: IntArray) -> Candidates:
        """The candidates at these positions, in that order."""
        return replace(
            self,
            docs=self.docs[order],
            scores=self.scores[order],
            fused=self.fused[order],
            ranks={arm: ranks[order] for arm, ranks in self.ranks.items()},
            raw_scores={arm: scores[order] for arm, scores in self.raw_scores.items()},
        )

    def sort(self) -> Candidates:
        """The candidates by score, ties by number."""
        return self.take(sort_by_score(self.docs, self.scores))

    def add(self, docs: IntArray) -> Candidates:
        """Adds memories that the graph led to, with score 0."""
        count = len(docs)
        ranks = {"graph": np.zeros(len(self), np.int32), **self.ranks}
        return replace(
            self,
            docs=np.concatenate([self.docs, docs]),
            scores=np.concatenate([self.scores, np.zeros(count)]),
            fused=np.concatenate([self.fused, np.zeros(count)]),
            ranks={
                arm: np.concatenate([known, np.full(count, arm == "graph", np.int32)])
                for arm, known in ranks.items()
            },
            raw_scores={
                arm: np.concatenate([known, np.full(count, np.nan)])
                for arm, known in self.raw_scores.items()
            },
        )


NO_CANDIDATES = Candidates(NO_HITS.docs, NO_HITS.scores, NO_HITS.scores)


def sort_by_score(docs: IntArray, scores: FloatArray) -> IntArray:
    """The order of memories by score, ties by number."""
    return np.lexsort((docs, -scores))


def find_positions(docs: IntArray, members: Numbers) -> IntArray:
    """The positions of `members` in `docs`, -1 for what is not there."""
    if not len(docs):
        return np.full(len(members), -1)
    order = np.argsort(docs)
    rows = order[np.minimum(np.searchsorted(docs, members, sorter=order), len(docs) - 1)]
    return np.where(docs[rows] == members, rows, -1)


def is_among(docs: IntArray, members: Numbers) -> BoolArray:
    """Which of `members` are in `docs`: faster for some hundred numbers than `np.isin`."""
    found: BoolArray = find_positions(docs, members) >= 0
    return found


class GraphHop(NamedTuple):
    """The path to a memory: the type of edge, the memory before it, and its score."""

    source: UUID
    kind: str
    contribution: float


class ScoredMemory(NamedTuple):
    """A memory with its score, the rank (from 1) at which each arm had it, and its hops.

    `raw_scores`: each arm's own score. `fused_score`: the score of all arms together. `factors`:
    the factors that multiplied the score. `base_score`: the score before them. `text_hash`: equal
    for equal texts. `doc`: the number of the memory.
    """

    id: UUID
    score: float
    arm_ranks: Mapping[str, int] = EMPTY_MAPPING
    raw_scores: Mapping[str, float] = EMPTY_MAPPING
    fused_score: float = 0.0
    hops: tuple[GraphHop, ...] = ()
    factors: Mapping[str, float] = EMPTY_MAPPING
    base_score: float = 0.0
    text_hash: int = 0
    doc: int = 0


class Rejection(NamedTuple):
    """Why a candidate is not in the answer, and which memory took its place if one did."""

    reason: str
    replaced_by: UUID | None = None


def sort_memories(memories: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    """Sorts by score, ties by id."""
    return sorted(memories, key=lambda memory: (-memory.score, memory.id))


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

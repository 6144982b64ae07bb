"""How much a graph leans on each of its memories: PageRank, and who votes for whom. Pure.

Power iteration of Page & Brin (1998) over weighted votes; a node that votes for none shares its
rank among all, and ranks add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.domain.edges import EdgeKind

DAMPING = 0.85
TOLERANCE = 1e-12
MOST_ROUNDS = 1000

_BACKWARD = frozenset({EdgeKind.LED_TO, EdgeKind.SUPERSEDES})
"""What an effect votes for is its cause; what was superseded, its successor."""
_BOTH = frozenset({EdgeKind.RELATES_TO})
_NONE = frozenset({EdgeKind.TOUCHES, EdgeKind.CONTRADICTS, EdgeKind.FOLLOWS})


class Weighted(NamedTuple):
    """Edges or votes, one a place: from which node, to which, and how much."""

    sources: NDArray[np.integer[Any]]
    targets: NDArray[np.integer[Any]]
    weights: NDArray[np.floating[Any]]

    def back(self) -> Weighted:
        """The same the other way."""
        return Weighted(self.targets, self.sources, self.weights)


Stored = Sequence[tuple[EdgeKind, Weighted]]
"""Edges as they are stored, in parts of one kind each."""


class Ranked(NamedTuple):
    """Nodes, ascending, and the rank of each."""

    nodes: NDArray[np.int64]
    ranks: NDArray[np.float64]


def ranked(edges: Stored) -> Ranked:
    """The rank of every node that a vote names; none without votes.

    Keeps 12 bytes for each edge, and arrays as long as a part or as there are nodes; while nodes
    are numbered, the distinct ends of each part come to them.
    """
    voting = [(kind, part) for kind, part in edges if kind not in _NONE]
    ends = [np.unique(end[part.weights > 0]) for _, part in voting for end in part[:2]]
    nodes = np.unique(np.concatenate(ends)).astype(np.int64) if ends else np.empty(0, np.int64)
    numbered = [(kind, _numbered(part, nodes)) for kind, part in voting]
    return Ranked(nodes, pagerank(votes(numbered), len(nodes)))


def _numbered(edges: Weighted, nodes: NDArray[np.int64]) -> Weighted:
    """Those that weigh anything, their nodes told by their places."""
    counts = edges.weights > 0
    sources, targets = (np.searchsorted(nodes, end[counts]) for end in edges[:2])
    return Weighted(
        sources.astype(np.int32), targets.astype(np.int32), edges.weights[counts].astype(np.float32)
    )


def votes(edges: Stored) -> list[Weighted]:
    """The votes that edges cast."""
    return [voted for kind, some in edges for voted in _cast(kind, some)]


def _cast(kind: EdgeKind, edges: Weighted) -> list[Weighted]:
    if kind in _NONE:
        return []
    if kind in _BOTH:
        return [edges, edges.back()]
    return [edges.back() if kind in _BACKWARD else edges]


def pagerank(
    ballots: Sequence[Weighted], size: int, damping: float = DAMPING
) -> NDArray[np.float64]:
    """The ranks of the nodes 0 to `size` by votes of weights above 0."""
    given = np.zeros(size)
    for part in ballots:
        np.add.at(given, part.sources, part.weights)
    dangling = given == 0
    passed_on = np.divide(damping, given, where=~dangling, out=np.zeros(size))
    ranks = np.full(size, 1 / max(size, 1))
    for _ in range(MOST_ROUNDS):
        shared = damping * ranks[dangling].sum() + 1 - damping
        after, passed = np.full(size, shared / max(size, 1)), ranks * passed_on
        for part in ballots:
            np.add.at(after, part.targets, passed[part.sources] * part.weights)
        moved = np.abs(after - ranks).sum()
        ranks = after
        if moved < TOLERANCE:
            break
    return ranks

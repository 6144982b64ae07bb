"""How much a graph leans on each of its memories: PageRank, and who votes for whom. Pure.

Power iteration of Page & Brin (1998) over weighted votes; a node that votes for none shares its
rank among all, and ranks add up to 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float64]

    def back(self) -> Weighted:
        """The same the other way."""
        return Weighted(self.targets, self.sources, self.weights)


class Ranked(NamedTuple):
    """Nodes, ascending, and the rank of each."""

    nodes: NDArray[np.int64]
    ranks: NDArray[np.float64]


def votes(edges: Iterable[tuple[EdgeKind, Weighted]]) -> Weighted:
    """The votes that edges cast, which come by their kind as they are stored."""
    none = Weighted(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    cast = [none, *(voted for kind, some in edges for voted in _cast(kind, some))]
    return Weighted(*(np.concatenate(part) for part in zip(*cast, strict=True)))


def _cast(kind: EdgeKind, edges: Weighted) -> list[Weighted]:
    if kind in _NONE:
        return []
    counts = edges.weights > 0
    counted = Weighted(edges.sources[counts], edges.targets[counts], edges.weights[counts])
    if kind in _BOTH:
        return [counted, counted.back()]
    return [counted.back() if kind in _BACKWARD else counted]


def pagerank(ballots: Weighted, damping: float = DAMPING) -> Ranked:
    """The rank of every node that a vote names; none without votes."""
    ends = np.concatenate((ballots.sources, ballots.targets))
    nodes, places = np.unique(ends, return_inverse=True)
    if not len(nodes):
        return Ranked(nodes, np.empty(0))
    sources, targets = places[: len(places) // 2], places[len(places) // 2 :]
    return Ranked(nodes, _settled(sources, targets, ballots.weights, (len(nodes), damping)))


def _settled(
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    weights: NDArray[np.float64],
    size_and_damping: tuple[int, float],
) -> NDArray[np.float64]:
    size, damping = size_and_damping
    given = np.bincount(sources, weights, minlength=size)
    share = weights / given[sources]
    dangling = given == 0
    ranks = np.full(size, 1 / size)
    for _ in range(MOST_ROUNDS):
        passed = np.bincount(targets, ranks[sources] * share, minlength=size)
        after: NDArray[np.float64] = (
            damping * (passed + ranks[dangling].sum() / size) + (1 - damping) / size
        )
        if np.abs(after - ranks).sum() < TOLERANCE:
            return after
        ranks = after
    return ranks

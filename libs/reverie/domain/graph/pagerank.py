"""PageRank over the memory graph: which edges vote for which memory, and the resulting ranks.

Power iteration of Page & Brin (1998) over weighted votes; a node without votes shares its rank
among all nodes, and ranks add up to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reverie.domain.core.kinds import EdgeKind

DAMPING = 0.85
TOLERANCE = 1e-12
MAX_ITERATIONS = 1000

_REVERSED_KINDS = frozenset({EdgeKind.LED_TO, EdgeKind.SUPERSEDES})
"""Edges that vote backwards: an effect for its cause, a superseded memory for its successor."""
_BIDIRECTIONAL_KINDS = frozenset({EdgeKind.RELATES_TO})
_IGNORED_KINDS = frozenset({EdgeKind.TOUCHES, EdgeKind.CONTRADICTS, EdgeKind.FOLLOWS})


class WeightedEdges(NamedTuple):
    """Edges or votes, one a place: from which node, to which, and how much."""

    sources: NDArray[np.integer[Any]]
    targets: NDArray[np.integer[Any]]
    weights: NDArray[np.floating[Any]]


EdgesByKind = Sequence[tuple[EdgeKind, WeightedEdges]]
"""Edges as they are stored, in parts of one kind each."""


class NodeRanks(NamedTuple):
    """Nodes, ascending, and the rank of each."""

    nodes: NDArray[np.int64]
    ranks: NDArray[np.float64]


def rank_nodes(edges: EdgesByKind) -> NodeRanks:
    """Returns the rank of every node in a vote; none without votes.

    Memory: 12 bytes per edge, and arrays of the length of a part or of the number of nodes. While
    nodes are numbered, the distinct ends of each part are added.
    """
    voting = [(kind, group) for kind, group in edges if kind not in _IGNORED_KINDS]
    ends = [np.unique(end[group.weights > 0]) for _, group in voting for end in group[:2]]
    nodes = np.unique(np.concatenate(ends)).astype(np.int64) if ends else np.empty(0, np.int64)
    numbered = [(kind, _renumber_nodes(group, nodes)) for kind, group in voting]
    return NodeRanks(nodes, compute_pagerank(collect_votes(numbered), len(nodes)))


def rank_scopes(scopes: Iterable[EdgesByKind]) -> NodeRanks:
    """Ranks the nodes of each scope by its own edges, as shares of the highest rank there.

    So a rank tells nothing of other scopes. No node is in two of them.
    """
    ranked = [found for edges in scopes if len((found := rank_nodes(edges)).nodes)]
    if not ranked:
        return rank_nodes(())
    nodes = np.concatenate([found.nodes for found in ranked])
    order = np.argsort(nodes)
    shares = np.concatenate([found.ranks / found.ranks.max() for found in ranked])
    return NodeRanks(nodes[order], shares[order])


def _renumber_nodes(edges: WeightedEdges, nodes: NDArray[np.int64]) -> WeightedEdges:
    """Returns the edges with weight, with nodes given as indexes."""
    has_weight = edges.weights > 0
    sources, targets = (np.searchsorted(nodes, end[has_weight]) for end in edges[:2])
    return WeightedEdges(
        sources.astype(np.int32),
        targets.astype(np.int32),
        edges.weights[has_weight].astype(np.float32),
    )


def collect_votes(edges: EdgesByKind) -> list[WeightedEdges]:
    """The votes that edges cast."""
    votes: list[WeightedEdges] = []
    for kind, group in edges:
        if kind not in _REVERSED_KINDS | _IGNORED_KINDS:
            votes.append(group)
        if kind in _REVERSED_KINDS | _BIDIRECTIONAL_KINDS:
            votes.append(WeightedEdges(group.targets, group.sources, group.weights))
    return votes


def compute_pagerank(vote_groups: Sequence[WeightedEdges], size: int) -> NDArray[np.float64]:
    """The ranks of the nodes 0 to `size` by votes of weights above 0."""
    out_weights = np.zeros(size)
    for group in vote_groups:
        np.add.at(out_weights, group.sources, group.weights)
    dangling = out_weights == 0
    pass_factors = np.divide(DAMPING, out_weights, where=~dangling, out=np.zeros(size))
    ranks = np.full(size, 1 / max(size, 1))
    for _ in range(MAX_ITERATIONS):
        baseline = DAMPING * ranks[dangling].sum() + 1 - DAMPING
        next_ranks, passed_ranks = np.full(size, baseline / max(size, 1)), ranks * pass_factors
        for group in vote_groups:
            np.add.at(next_ranks, group.targets, passed_ranks[group.sources] * group.weights)
        change = np.abs(next_ranks - ranks).sum()
        ranks = next_ranks
        if change < TOLERANCE:
            break
    return ranks

"""PageRank, connected components and the propagation of staleness in the graph."""

from __future__ import annotations

import random
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.graph.clustering import count_component_sizes
from reverie.domain.graph.pagerank import WeightedEdges, collect_votes, rank_nodes, rank_scopes
from reverie.domain.staleness.propagation import AffectedMemory, DependencyEdge, spread_impact
from tests.support.networkx_reference import networkx_ranks


def _weighted(edges: Sequence[tuple[int, int, float]]) -> WeightedEdges:
    sources, targets, weights = zip(*edges, strict=True)
    return WeightedEdges(np.array(sources), np.array(targets), np.array(weights))


@pytest.mark.parametrize("nodes", [2, 50, 400])
def test_ranks_equal_those_of_networkx_including_dangling_nodes(nodes: int) -> None:
    chance = random.Random(nodes)
    # Only some of the nodes vote: the others share what they get among all.
    ballots = [
        (chance.randrange(max(1, nodes * 2 // 3)), chance.randrange(nodes), chance.random() + 0.01)
        for _ in range(nodes * 3)
    ]
    part = len(ballots) // 2
    halves = [(EdgeKind.DEPENDS_ON, _weighted(half)) for half in (ballots[:part], ballots[part:])]
    found, theirs = rank_nodes(halves), networkx_ranks(ballots)
    ours = dict(zip(found.nodes.tolist(), found.ranks.tolist(), strict=True))
    assert list(ours) == sorted(theirs)
    assert max(abs(ours[node] - theirs[node]) for node in ours) < 1e-6
    assert sum(ours.values()) == pytest.approx(1)


def test_without_edges_there_are_no_ranks() -> None:
    for edges in ([], [(EdgeKind.DEPENDS_ON, _weighted([(1, 2, 0.0)]))]):
        found = rank_nodes(edges)
        assert (found.nodes.tolist(), found.ranks.tolist()) == ([], [])


def test_each_scope_is_ranked_by_itself_as_shares_of_its_highest() -> None:
    one = [(EdgeKind.DEPENDS_ON, _weighted([(5, 1, 1.0), (9, 1, 0.5)]))]
    two = [(EdgeKind.DEPENDS_ON, _weighted([(3, 4, 1.0)]))]
    both, alone = rank_scopes([one, [], two]), rank_scopes([one])
    assert both.nodes.tolist() == [1, 3, 4, 5, 9]
    ranks = dict(zip(both.nodes.tolist(), both.ranks.tolist(), strict=True))
    assert (ranks[1], ranks[4]) == (1, 1)
    assert ranks.items() >= set(zip(alone.nodes.tolist(), alone.ranks.tolist(), strict=True))
    assert rank_scopes([]).nodes.tolist() == []


def test_effects_vote_for_causes_old_memories_for_successors_and_files_get_none() -> None:
    cause, effect, new, old, a, b, c, d, file = range(9)
    cast = collect_votes(
        [
            (EdgeKind.LED_TO, _weighted([(cause, effect, 1.0)])),
            (EdgeKind.SUPERSEDES, _weighted([(new, old, 1.0)])),
            (EdgeKind.DEPENDS_ON, _weighted([(a, b, 0.5)])),
            (EdgeKind.RELATES_TO, _weighted([(c, d, 1.0)])),
            (EdgeKind.TOUCHES, _weighted([(a, file, 1.0)])),
        ]
    )
    assert [one for part in cast for one in zip(*(end.tolist() for end in part), strict=True)] == [
        (effect, cause, 1.0),
        (old, new, 1.0),
        (a, b, 0.5),
        (c, d, 1.0),
        (d, c, 1.0),
    ]


def test_connected_components_ignore_edge_direction() -> None:
    assert count_component_sizes([(1, 2), (3, 2), (4, 5), (5, 4)]) == [3, 2]
    assert count_component_sizes([]) == []


def test_impact_follows_the_strongest_path_and_decays() -> None:
    a, b, c = (UUID(int=n) for n in range(3))
    found = {a: AffectedMemory(0.5, ("src/a.py", "<-touches-", str(a)))}
    weak = DependencyEdge(a, b, EdgeKind.LEARNED_IN, False, 1.0)
    strong = DependencyEdge(a, b, EdgeKind.DEPENDS_ON, False, 1.0)
    lost = DependencyEdge(a, c, EdgeKind.LED_TO, True, 0.1)
    back = DependencyEdge(a, a, EdgeKind.DEPENDS_ON, False, 1.0)
    reached = spread_impact(found, [weak, strong, lost, back])
    assert list(reached) == [b]
    assert reached[b].score == pytest.approx(0.4)
    assert reached[b].path[-2:] == ("<-depends_on-", str(b))

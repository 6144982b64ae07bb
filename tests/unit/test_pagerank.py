"""Ranks, components and the spread of doubt, by their rules."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from tests.reference import networkx_ranks

from reverie.domain.components import component_sizes
from reverie.domain.edges import EdgeKind
from reverie.domain.impact import Affected, Leaning, spread
from reverie.domain.pagerank import pagerank, votes


@pytest.mark.parametrize("nodes", [2, 50, 400])
def test_ranks_equal_those_of_networkx_also_where_votes_end(nodes: int) -> None:
    chance = random.Random(nodes)
    # Only some of the nodes vote: the others share what they get among all.
    ballots = [
        (chance.randrange(max(1, nodes * 2 // 3)), chance.randrange(nodes), chance.random() + 0.01)
        for _ in range(nodes * 3)
    ]
    ours, theirs = pagerank(ballots), networkx_ranks(ballots)
    assert ours.keys() == theirs.keys()
    assert max(abs(ours[node] - theirs[node]) for node in ours) < 1e-6
    assert sum(ours.values()) == pytest.approx(1)


def test_without_votes_there_are_no_ranks() -> None:
    assert pagerank([]) == {}


def test_effects_vote_for_causes_successors_win_and_what_was_touched_gets_no_vote() -> None:
    cast = votes(
        [
            ("cause", EdgeKind.LED_TO, "effect", 1.0),
            ("new", EdgeKind.SUPERSEDES, "old", 1.0),
            ("a", EdgeKind.DEPENDS_ON, "b", 0.5),
            ("c", EdgeKind.RELATES_TO, "d", 1.0),
            ("a", EdgeKind.TOUCHES, "file", 1.0),
            ("a", EdgeKind.PART_OF, "weightless", 0.0),
        ]
    )
    assert [(source, target) for source, target, _ in cast] == [
        ("effect", "cause"),
        ("old", "new"),
        ("a", "b"),
        ("c", "d"),
        ("d", "c"),
    ]


def test_components_are_counted_whichever_way_edges_point() -> None:
    assert component_sizes([(1, 2), (3, 2), (4, 5), (5, 4)]) == [3, 2]
    assert component_sizes([]) == []


def test_doubt_takes_the_best_way_and_fades() -> None:
    a, b, c = (UUID(int=n) for n in range(3))
    found = {a: Affected(0.5, ("src/a.py", "<-touches-", str(a)))}
    weak = Leaning(a, b, EdgeKind.LEARNED_IN, False, 1.0)
    strong = Leaning(a, b, EdgeKind.DEPENDS_ON, False, 1.0)
    lost = Leaning(a, c, EdgeKind.LED_TO, True, 0.1)
    back = Leaning(a, a, EdgeKind.DEPENDS_ON, False, 1.0)
    reached = spread(found, [weak, strong, lost, back])
    assert list(reached) == [b]
    assert reached[b].score == pytest.approx(0.4)
    assert reached[b].path[-2:] == ("<-depends_on-", str(b))

"""How neighbours in the graph share the scores of what was found."""

from __future__ import annotations

import numpy as np
import pytest

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.retrieval.candidates import EDGE_KINDS, Candidates, NeighbourEdges
from reverie.domain.retrieval.graph_expansion import EDGE_WEIGHTS, HOP_WEIGHT, expand_neighbours
from reverie.domain.retrieval.question_parsing import QuestionIntent
from tests.domain.retrieval.made_up_candidates import candidates, listed, ranks_of

Edge = tuple[int, int, EdgeKind, float]


def edge(near: int, far: int, kind: EdgeKind = EdgeKind.LED_TO, weight: float = 1.0) -> Edge:
    return near, far, kind, weight


def edges(*lines: Edge) -> NeighbourEdges:
    return NeighbourEdges(
        np.array([line[0] for line in lines], np.int64),
        np.array([line[1] for line in lines], np.int64),
        np.array([EDGE_KINDS.index(line[2]) for line in lines], np.uint8),
        np.array([line[3] for line in lines], np.float64),
    )


def hops_to(found: Candidates, doc: int) -> list[tuple[int, EdgeKind]]:
    return [
        (source, EDGE_KINDS[kind])
        for hops in found.hops
        for source, target, kind in zip(
            hops.sources.tolist(), hops.targets.tolist(), hops.kinds.tolist(), strict=True
        )
        if target == doc
    ]


def _expanded(found: Candidates, *lines: Edge) -> Candidates:
    return expand_neighbours(found, edges(*lines))


def _score(found: Candidates, doc: int) -> float:
    return dict(listed(found))[doc]


def test_a_neighbour_ranks_below_the_hit_that_led_to_it() -> None:
    found = _expanded(candidates((1, 0.8), words=[1]), edge(1, 2))
    assert found.docs.tolist() == [1, 2]
    assert 0 < found.scores[1] < found.scores[0]
    assert ranks_of(found, 2) == {"graph": 1}
    assert ranks_of(found, 1) == {"words": 1}


def test_a_hit_keeps_its_score_or_takes_the_better_one_of_a_neighbour() -> None:
    before = candidates((1, 0.8), (2, 0.1), words=(1, 2))
    found = _expanded(before, edge(1, 2), edge(2, 1))
    assert listed(found) == [(1, 0.8), (2, pytest.approx(0.8 * HOP_WEIGHT))]
    assert (ranks_of(found, 1), ranks_of(found, 2)) == ({"words": 1}, {"words": 2})
    assert (hops_to(found, 1), hops_to(found, 2)) == ([], [(1, EdgeKind.LED_TO)])


def test_adjacent_turns_add_to_the_score() -> None:
    found = _expanded(
        candidates((1, 0.8), (2, 0.6), (3, 0.4)),
        edge(1, 2, EdgeKind.FOLLOWS),
        edge(3, 2, EdgeKind.FOLLOWS, 0.5),
        edge(1, 2, EdgeKind.RELATES_TO),
    )
    lent = (0.8 + 0.5 * 0.4) * EDGE_WEIGHTS[EdgeKind.FOLLOWS] * HOP_WEIGHT
    assert _score(found, 2) == pytest.approx(0.6 + lent)


def test_the_strongest_of_several_edges_counts_in_any_order() -> None:
    found = candidates((1, 0.8), (2, 0.4))
    lines = [edge(2, 3), edge(1, 3), edge(1, 3, weight=0.2)]
    one, other = _expanded(found, *lines), _expanded(found, *lines[::-1])
    assert listed(one) == listed(other)
    assert hops_to(one, 3) == hops_to(other, 3) == [(1, EdgeKind.LED_TO)]
    assert _score(one, 3) == pytest.approx(0.8 * HOP_WEIGHT)


def test_many_edges_from_similar_memories_do_not_make_a_hub_the_best() -> None:
    found = candidates(*((n, 0.5) for n in range(1, 30)))
    lines = [edge(n, 99, EdgeKind.RELATES_TO) for n in range(1, 30)]
    assert _score(_expanded(found, *lines), 99) < 0.5


def test_a_further_hop_adds_nothing_to_existing_hits() -> None:
    found = candidates((1, 0.8), (2, 0.1))
    further = expand_neighbours(found, edges(edge(1, 2), edge(1, 3)), only_new=True)
    assert _score(further, 2) == 0.1
    assert _score(further, 3) > 0


def test_a_why_question_prefers_causal_edges() -> None:
    found = candidates((1, 0.8))
    lines = edges(edge(1, 2), edge(1, 3, EdgeKind.SUPERSEDES))
    plain = expand_neighbours(found, lines)
    asked = expand_neighbours(found, lines, QuestionIntent.WHY)
    assert _score(asked, 2) > _score(plain, 2)
    assert _score(asked, 2) > _score(asked, 3)


@pytest.mark.parametrize("line", [edge(1, 2, EdgeKind.TOUCHES), edge(7, 8)])
def test_file_anchors_and_edges_from_unknown_memories_add_no_neighbours(line: Edge) -> None:
    assert listed(_expanded(candidates((1, 0.8)), line)) == [(1, 0.8)]
    assert listed(_expanded(candidates(), line)) == []
    assert listed(_expanded(candidates((1, 0.8)))) == [(1, 0.8)]

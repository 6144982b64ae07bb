"""Expands a set of candidates to their neighbours in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.retrieval.candidates import (
    EDGE_KINDS,
    Candidates,
    GraphHops,
    NeighbourEdges,
    find_positions,
)
from reverie.domain.retrieval.question_parsing import QuestionIntent
from reverie.domain.retrieval.ranking_facts import BoolArray, IntArray

HOP_WEIGHT = 0.4
EDGE_WEIGHTS: Mapping[EdgeKind, float] = {
    EdgeKind.LED_TO: 1.0,
    EdgeKind.SUPERSEDES: 1.0,
    EdgeKind.CONTRADICTS: 0.9,
    EdgeKind.DEPENDS_ON: 0.8,
    EdgeKind.PART_OF: 0.8,
    EdgeKind.RELATES_TO: 0.7,
    EdgeKind.FOLLOWS: 0.35,
    EdgeKind.LEARNED_IN: 0.4,
    EdgeKind.TOUCHES: 0.0,
}
INTENT_EDGE_FACTORS: Mapping[QuestionIntent, Mapping[EdgeKind, float]] = {
    QuestionIntent.WHY: {
        EdgeKind.LED_TO: 1.5,
        EdgeKind.SUPERSEDES: 1.3,
        EdgeKind.CONTRADICTS: 1.2,
    },
    QuestionIntent.WHEN: {EdgeKind.FOLLOWS: 1.3, EdgeKind.LEARNED_IN: 1.5},
    QuestionIntent.HOW: {EdgeKind.PART_OF: 1.3, EdgeKind.DEPENDS_ON: 1.3},
    QuestionIntent.WHAT: {EdgeKind.RELATES_TO: 1.2, EdgeKind.DEPENDS_ON: 1.2},
}
"""Factors of an edge's weight for a question of that intent."""
NODE_WEIGHT, WHAT_NODE_WEIGHT = 1.0, 1.5
"""What an edge from a named file or entity weighs; the second for questions of "what"."""
SESSION_KIND = EDGE_KINDS.index(EdgeKind.FOLLOWS)


def expand_neighbours(
    candidates: Candidates,
    edges: NeighbourEdges,
    intent: QuestionIntent = QuestionIntent.GENERAL,
    *,
    only_new: bool = False,
    touch_weight: float = EDGE_WEIGHTS[EdgeKind.TOUCHES],
) -> Candidates:
    """Adds the neighbours of candidates: a neighbour gets score × edge weight × hop weight.

    Of several edges to a neighbour only the strongest counts, because many edges only mean that
    texts are similar, which the arms measure. Contributions of neighbours in the session are added:
    an answer is often next to the words of the question. All contributions use the scores before
    the hop, so the order of edges does not matter. `only_new`: a further hop, which changes no
    candidate that is already there. `touch_weight`: what edges from files and entities weigh.
    """
    hops = _compute_hops(candidates, edges, intent, touch_weight)
    targets = find_positions(candidates.docs, hops.targets)
    if only_new:
        hops, targets = _select(hops, targets < 0), targets[targets < 0]
    known = np.where(targets >= 0, candidates.scores[targets] if len(candidates) else 0.0, 0.0)
    is_session = hops.kinds == SESSION_KIND
    # The hops of a target are in a row, its strongest other edge first.
    order = np.lexsort((hops.sources, -hops.contributions, is_session, hops.targets))
    hops, known, is_session = _select(hops, order), known[order], is_session[order]
    is_first = np.append(True, hops.targets[1:] != hops.targets[:-1])[: len(hops.targets)]
    counts = is_session | (is_first & (hops.contributions > known))
    hops = _select(hops, counts)
    new = np.setdiff1d(hops.targets, candidates.docs)
    if len(new):
        candidates = candidates.add(new)
    rows = find_positions(candidates.docs, hops.targets)
    scores = candidates.scores.copy()
    is_session = hops.kinds == SESSION_KIND
    scores[rows[~is_session]] = hops.contributions[~is_session]
    np.add.at(scores, rows[is_session], hops.contributions[is_session])
    return replace(candidates, scores=scores, hops=(*candidates.hops, hops)).sort()


def expand_named_nodes(
    candidates: Candidates, edges: NeighbourEdges, intent: QuestionIntent
) -> Candidates:
    """Adds memories that touch the files and entities which a question names.

    A node counts as the best candidate does. It cannot be an answer, so it stands last itself.
    """
    if not len(edges.near):
        return candidates
    nodes = np.setdiff1d(edges.near, candidates.docs)
    best = float(candidates.scores.max()) if len(candidates) else 1.0
    candidates = candidates.add(nodes)
    rows = find_positions(candidates.docs, np.unique(edges.near))
    scores = candidates.scores.copy()
    scores[rows] = best
    weight = WHAT_NODE_WEIGHT if intent is QuestionIntent.WHAT else NODE_WEIGHT
    seeded = replace(candidates, scores=scores)
    walked = expand_neighbours(seeded, edges, intent, touch_weight=weight)
    scores = walked.scores.copy()
    scores[find_positions(walked.docs, nodes)] = 0.0
    return replace(walked, scores=scores).sort()


def _compute_hops(
    candidates: Candidates, edges: NeighbourEdges, intent: QuestionIntent, touch_weight: float
) -> GraphHops:
    """What each edge lends; of several edges of two memories the strongest, apart by session."""
    factors = INTENT_EDGE_FACTORS.get(intent, {})
    weights = np.array(
        [EDGE_WEIGHTS.get(kind, 0.5) * factors.get(kind, 1.0) for kind in EDGE_KINDS]
    )
    weights[EDGE_KINDS.index(EdgeKind.TOUCHES)] = touch_weight
    sources = find_positions(candidates.docs, edges.near)
    scores = np.where(sources >= 0, candidates.scores[sources] if len(candidates) else 0.0, 0.0)
    contributions = scores * edges.weights * weights[edges.kinds] * HOP_WEIGHT
    hops = GraphHops(edges.near, edges.far, edges.kinds, contributions)
    hops = _select(hops, contributions > 0)
    is_session = hops.kinds == SESSION_KIND
    order = np.lexsort((hops.kinds, -hops.contributions, is_session, hops.sources, hops.targets))
    hops, is_session = _select(hops, order), is_session[order]
    routes = np.stack([hops.targets, hops.sources, is_session])
    is_first = np.append(True, np.any(routes[:, 1:] != routes[:, :-1], axis=0))
    return _select(hops, is_first[: len(hops.targets)])


def _select(hops: GraphHops, which: IntArray | BoolArray) -> GraphHops:
    return GraphHops._make(column[which] for column in hops)

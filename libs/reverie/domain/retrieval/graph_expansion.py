"""Expands a set of memories to their neighbours in the graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from reverie.domain.retrieval.candidates import (
    GraphHop,
    NeighbourEdge,
    ScoredMemory,
    sort_by_score,
)
from reverie.domain.retrieval.question_parsing import QuestionIntent

HOP_WEIGHT = 0.4
SESSION_EDGE_KIND = "follows"
EDGE_WEIGHTS: Mapping[str, float] = {
    "led_to": 1.0,
    "supersedes": 1.0,
    "contradicts": 0.9,
    "depends_on": 0.8,
    "part_of": 0.8,
    "relates_to": 0.7,
    "follows": 0.35,
    "learned_in": 0.4,
    "touches": 0.0,
}
INTENT_EDGE_FACTORS: Mapping[QuestionIntent, Mapping[str, float]] = {
    QuestionIntent.WHY: {"led_to": 1.5, "supersedes": 1.3, "contradicts": 1.2},
    QuestionIntent.WHEN: {"follows": 1.3, "learned_in": 1.5},
    QuestionIntent.HOW: {"part_of": 1.3, "depends_on": 1.3},
    QuestionIntent.WHAT: {"relates_to": 1.2, "depends_on": 1.2},
}
"""Factors of an edge's weight for a question of that intent."""

_GRAPH_ARM: Mapping[str, int] = {"graph": 1}


def expand_neighbours(
    memories: Sequence[ScoredMemory],
    edges: Iterable[NeighbourEdge],
    intent: QuestionIntent = QuestionIntent.GENERAL,
    *,
    only_new: bool = False,
) -> list[ScoredMemory]:
    """Adds the neighbours of memories: a neighbour gets score × edge weight × hop weight.

    Of several edges to a neighbour only the strongest counts, because many edges only mean that
    texts are similar, which the arms measure. Contributions of neighbours in the session are added:
    an answer is often next to the words of the question. All contributions use the scores before
    the hop, so the order of edges does not matter. `only_new`: a further hop, which changes no
    memory that is already there.
    """
    by_id = {memory.id: memory for memory in memories}
    contributions = _collect_contributions(by_id, edges, intent, only_new)
    for neighbour, hops in contributions.items():
        by_id[neighbour] = _add_contributions(
            by_id.get(neighbour) or ScoredMemory(neighbour, 0.0, _GRAPH_ARM), hops
        )
    return sort_by_score(by_id.values())


def _collect_contributions(
    by_id: Mapping[UUID, ScoredMemory],
    edges: Iterable[NeighbourEdge],
    intent: QuestionIntent,
    only_new: bool,
) -> dict[UUID, dict[tuple[UUID, bool], GraphHop]]:
    """The contributions to each neighbour, the greatest for each source and kind of edge."""
    contributions: dict[UUID, dict[tuple[UUID, bool], GraphHop]] = defaultdict(dict)
    edge_weights: dict[str, float] = {}
    for edge in edges:
        source, neighbour, kind = edge.near, edge.far, edge.kind
        source_memory = by_id.get(source)
        if source_memory is None or (only_new and neighbour in by_id):
            continue
        if kind not in edge_weights:
            factor = INTENT_EDGE_FACTORS.get(intent, {}).get(kind, 1.0)
            edge_weights[kind] = EDGE_WEIGHTS.get(kind, 0.5) * factor
        contribution = source_memory.score * edge.weight * edge_weights[kind] * HOP_WEIGHT
        if contribution <= 0:
            continue
        hop_by_route, route = contributions[neighbour], (source, kind == SESSION_EDGE_KIND)
        existing = hop_by_route.get(route)
        if existing is None or (contribution, kind) > (existing.contribution, existing.kind):
            hop_by_route[route] = GraphHop(source, kind, contribution)
    return contributions


def _add_contributions(
    memory: ScoredMemory, contributions: Mapping[tuple[UUID, bool], GraphHop]
) -> ScoredMemory:
    ordered_hops = sorted(contributions.values(), key=lambda hop: (-hop.contribution, hop.source))
    score = memory.score
    linked: list[GraphHop] = []
    session_hops: list[GraphHop] = []
    for hop in ordered_hops:
        if hop.kind == SESSION_EDGE_KIND:
            session_hops.append(hop)
        elif not linked and hop.contribution > memory.score:
            linked.append(hop)
            score = hop.contribution
    if not linked and not session_hops:
        return memory
    score += sum([hop.contribution for hop in session_hops])
    return memory._replace(score=score, hops=(*memory.hops, *linked, *session_hops))

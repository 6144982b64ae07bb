"""Ranking of search results: fusion of arms, expansion over the graph, score factors.

Arms are fused by a weighted sum of their normalized scores, or by reciprocal ranks (Cormack,
Clarke & Büttcher 2009). The sum keeps the distance between a good hit and a poor one
(docs/performance.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from operator import eq, itemgetter
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from reverie.domain.retrieval.question_parsing import QuestionIntent

ARM_WEIGHTS: Mapping[str, float] = {"words": 0.45, "meaning": 0.55}
FusionMethod = Literal["weighted", "reciprocal"]
RRF_K = 60
DISTANT_SCORE_SHARE = 0.6
MIN_HITS_FOR_BASELINE = 100
HOP_WEIGHT = 0.4
SESSION_EDGE_KIND = "follows"
DEMOTION_FACTOR = 0.95
ADJACENT_TURN_SHARE = 0.4
LONG_TEXT_FACTOR = 2.0

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
"""How much more an edge says to a question of that intent."""


EMPTY_MAPPING: Mapping[str, Any] = {}


class GraphHop(NamedTuple):
    """How a memory was reached: along which type of edge, from where, and what it lent."""

    source: UUID
    kind: str
    contribution: float


class ScoredMemory(NamedTuple):
    """A memory with its score, the rank (from 1) at which each arm had it, and its hops.

    `raw_scores`: each arm's own score. `fused_score`: what the arms gave. `factors`: what it was
    multiplied by.
    """

    id: UUID
    score: float
    arm_ranks: Mapping[str, int] = EMPTY_MAPPING
    raw_scores: Mapping[str, float] = EMPTY_MAPPING
    fused_score: float = 0.0
    hops: tuple[GraphHop, ...] = ()
    factors: Mapping[str, float] = EMPTY_MAPPING


_GRAPH_ARM: Mapping[str, int] = {"graph": 1}
_get_id, _get_score = itemgetter(0), itemgetter(1)


class ScoredHit(Protocol):
    """What an arm found, with that arm's own score."""

    @property
    def id(self) -> UUID: ...
    @property
    def score(self) -> float: ...


class WordHit(ScoredHit, Protocol):
    """What words found; `whole`: no other arm misses it for being new."""

    @property
    def whole(self) -> bool: ...


class ExpansionEdge(Protocol):
    """An edge seen from a memory that was found."""

    @property
    def near(self) -> UUID: ...
    @property
    def far(self) -> UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> float: ...


def fuse_arms(
    hits_by_arm: Mapping[str, Sequence[ScoredHit]],
    weights: Mapping[str, float] = ARM_WEIGHTS,
    method: FusionMethod = "weighted",
) -> list[ScoredMemory]:
    """What all arms found, each arm in its own order, best first; ties by id.

    Scores lie in 0..1: weights count as shares of those of the arms that brought something.
    """
    active_arms = {
        arm: hits for arm, hits in hits_by_arm.items() if hits and weights.get(arm, 0.0) > 0
    }
    total_weight = sum(weights[arm] for arm in active_arms)
    fused: dict[UUID, ScoredMemory] = {}
    for arm in sorted(active_arms):
        shares = (
            _normalize_scores(arm, active_arms[arm])
            if method == "weighted"
            else _reciprocal_rank_scores(active_arms[arm])
        )
        weight = weights[arm] / total_weight
        for rank, (hit, share) in enumerate(zip(active_arms[arm], shares, strict=True), start=1):
            memory_id, score = hit.id, weight * share
            existing = fused.get(memory_id)
            if existing is None:
                fused[memory_id] = ScoredMemory(
                    memory_id, score, {arm: rank}, {arm: hit.score}, score
                )
            else:
                score += existing.score
                ranks, raw_scores = (
                    {**existing.arm_ranks, arm: rank},
                    {**existing.raw_scores, arm: hit.score},
                )
                fused[memory_id] = ScoredMemory(memory_id, score, ranks, raw_scores, score)
    return sort_by_score(fused.values())


def _normalize_scores(arm: str, hits: Sequence[ScoredHit]) -> list[float]:
    """Each hit's score between the arm's base and its best, as 0..1.

    A cosine says little below that of a distant text, and how much a distant text has hangs on the
    model. So the base of meaning is its last candidate of many; of few all may be near, so there
    it is 0.6 of the best where that is less.
    """
    best = hits[0].score
    base = _estimate_baseline(best, hits[-1].score, len(hits)) if arm == "meaning" else 0.0
    return [(hit.score - base) / (best - base) if best > base else 1.0 for hit in hits]


def _estimate_baseline(best: float, last: float, hit_count: int) -> float:
    return last if hit_count >= MIN_HITS_FOR_BASELINE else min(last, DISTANT_SCORE_SHARE * best)


def _reciprocal_rank_scores(hits: Sequence[ScoredHit]) -> list[float]:
    return [(RRF_K + 1) / (RRF_K + rank) for rank in range(1, len(hits) + 1)]


def find_unembedded(
    word_hits: Iterable[WordHit], vector_hits: Sequence[ScoredHit]
) -> frozenset[UUID]:
    """What only words could find, for it had no vectors yet; none where meaning found nothing.

    What counts is how it was when it was looked for: its vectors may come a moment later.
    """
    if not vector_hits:
        return frozenset()
    new_ids = {hit.id for hit in word_hits if not hit.whole}
    return frozenset(new_ids - {hit.id for hit in vector_hits} if new_ids else ())


def rescore_with_arm(
    memories: Sequence[ScoredMemory],
    arm: str,
    hits: Sequence[ScoredHit],
    weight: float,
    method: FusionMethod = "weighted",
    long_ids: Container[UUID] = (),
) -> list[ScoredMemory]:
    """What was found, judged by one arm more, which brings nothing of its own, best first.

    Its `hits` are some of `memories`, best first; a share `weight` of their scores goes by it,
    twice that of `long_ids` texts: it looks at their best passage, where their words are those of
    the whole. What it does not know keeps its score.
    """
    if not hits or not weight:
        return list(memories)
    shares = _normalize_scores(arm, hits) if method == "weighted" else _reciprocal_rank_scores(hits)
    by_id = {memory.id: memory for memory in memories}
    for rank, (hit, share) in enumerate(zip(hits, shares, strict=True), start=1):
        memory = by_id[hit.id]
        effective_weight = min(1.0, LONG_TEXT_FACTOR * weight) if hit.id in long_ids else weight
        score = (1 - effective_weight) * memory.score + effective_weight * share
        arm_ranks, raw_scores = (
            {**memory.arm_ranks, arm: rank},
            {**memory.raw_scores, arm: hit.score},
        )
        by_id[hit.id] = ScoredMemory(
            memory.id, score, arm_ranks, raw_scores, score, memory.hops, memory.factors
        )
    return sort_by_score(by_id.values())


def get_edge_weight(kind: str, intent: QuestionIntent = QuestionIntent.GENERAL) -> float:
    """How much of a score passes along an edge of that type, for a question of that intent."""
    return EDGE_WEIGHTS.get(kind, 0.5) * INTENT_EDGE_FACTORS.get(intent, {}).get(kind, 1.0)


def expand_neighbours(
    memories: Sequence[ScoredMemory],
    edges: Iterable[ExpansionEdge],
    intent: QuestionIntent = QuestionIntent.GENERAL,
    *,
    only_new: bool = False,
) -> list[ScoredMemory]:
    """What was found lends to its neighbours: score × edge × hop.

    A neighbour has at least the strongest loan along an edge, and what its neighbours in the
    session lend is added: what answers is often said beside what has the words of the question,
    while many edges only say that texts are alike, which the arms know. All loans are reckoned
    from the scores before any of them, so that the order of edges does not matter. `only_new`:
    a further hop, which lends nothing to what stands already.
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
    edges: Iterable[ExpansionEdge],
    intent: QuestionIntent,
    only_new: bool,
) -> dict[UUID, dict[tuple[UUID, bool], GraphHop]]:
    """What each memory is lent, the most along each way: from where, in its session or not."""
    contributions: dict[UUID, dict[tuple[UUID, bool], GraphHop]] = defaultdict(dict)
    edge_weights: dict[str, float] = {}
    for edge in edges:
        source, neighbour, kind = edge.near, edge.far, edge.kind
        source_memory = by_id.get(source)
        if source_memory is None or (only_new and neighbour in by_id):
            continue
        if kind not in edge_weights:
            edge_weights[kind] = get_edge_weight(kind, intent)
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
    ordered_hops: Iterable[GraphHop] = contributions.values()
    if len(contributions) > 1:
        ordered_hops = sorted(ordered_hops, key=_contribution_key)
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
    hops = (*memory.hops, *linked, *session_hops)
    return ScoredMemory(
        memory.id,
        score,
        memory.arm_ranks,
        memory.raw_scores,
        memory.fused_score,
        hops,
        memory.factors,
    )


def _contribution_key(hop: GraphHop) -> tuple[float, UUID]:
    return -hop.contribution, hop.source


def score_with_adjacent_turns(turns: Mapping[UUID, tuple[UUID, int, float]]) -> dict[UUID, float]:
    """Turns by (session, place, score): each lends to the two before and the two after it.

    What answers a question is often said beside the turn that has its words.
    """
    score_at = {(session, position): score for session, position, score in turns.values()}
    return {
        turn: score
        + sum(
            ADJACENT_TURN_SHARE / abs(offset) * score_at.get((session, position + offset), 0.0)
            for offset in (-2, -1, 1, 2)
        )
        for turn, (session, position, score) in turns.items()
    }


def apply_factors(memory: ScoredMemory, factors: Mapping[str, float]) -> ScoredMemory:
    """The score times all factors, which are kept beside it; those of 1 are not."""
    score = memory.score
    applied = dict(memory.factors)
    for name, factor in factors.items():
        if factor != 1.0:
            score *= factor
            applied[name] = round(factor, 4)
    return ScoredMemory(
        memory.id,
        score,
        memory.arm_ranks,
        memory.raw_scores,
        memory.fused_score,
        memory.hops,
        applied,
    )


def demote_superseded(
    memories: Sequence[ScoredMemory], successors: Mapping[UUID, UUID]
) -> list[ScoredMemory]:
    """What was replaced stands below what took its place, where both were found.

    A score of 0 stays: there is nothing below it.
    """
    if not successors:
        return sort_by_score(memories)
    by_id = {memory.id: memory for memory in memories}
    # The newest first, so that a chain of replacements comes out in order.
    for memory in sorted(memories, key=lambda memory: memory.id, reverse=True):
        newer = by_id.get(successors[memory.id]) if memory.id in successors else None
        if newer is not None and memory.score >= newer.score and memory.score > 0:
            by_id[memory.id] = apply_factors(
                memory, {"successor": DEMOTION_FACTOR * newer.score / memory.score}
            )
    return sort_by_score(by_id.values())


def boost_named(
    memories: Sequence[ScoredMemory], named_ids: Collection[UUID]
) -> list[ScoredMemory]:
    """All of `named_ids` stand above the rest, whose scores keep their shares of the best of them.

    A score of 0 stays: there is nothing below it.
    """
    if not named_ids:
        return list(memories)
    lowest_named = min(
        (memory.score for memory in memories if memory.id in named_ids and memory.score > 0),
        default=0.0,
    )
    highest_other = max(
        (memory.score for memory in memories if memory.id not in named_ids), default=0.0
    )
    if not lowest_named or highest_other < lowest_named:
        return list(memories)
    factor = {"named": DEMOTION_FACTOR * lowest_named / highest_other}
    return sort_by_score(
        memory if memory.id in named_ids else apply_factors(memory, factor) for memory in memories
    )


def with_score(memory: ScoredMemory, score: float) -> ScoredMemory:
    """The same with another score; the factor `rerank` says by how much it changed."""
    if memory.score in (0.0, score):
        return memory
    return memory._replace(
        score=score, factors={**memory.factors, "rerank": round(score / memory.score, 4)}
    )


def sort_by_score(memories: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    """By score, ties by id."""
    ranked = sorted(memories, key=_get_score, reverse=True)
    scores = list(map(_get_score, ranked))
    tied = [index for index, is_tied in enumerate(map(eq, scores, scores[1:])) if is_tied]
    next_index = 0
    for start in tied:
        # Ids compare slowly, and only those of one score have to.
        if start >= next_index:
            next_index = start + 2
            while next_index < len(scores) and scores[next_index] == scores[start]:
                next_index += 1
            ranked[start:next_index] = sorted(ranked[start:next_index], key=_get_id)
    return ranked

"""Fuses the hits of the retrieval arms into one score per memory.

Arms are fused by a weighted sum of their normalized scores, or by reciprocal ranks (Cormack,
Clarke & Büttcher 2009). The sum keeps the distance between a good hit and a poor one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

from reverie.domain.retrieval.candidates import ScoredMemory, SearchHit, sort_by_score

ARM_WEIGHTS: Mapping[str, float] = {"words": 0.45, "meaning": 0.55}
FusionMethod = Literal["weighted", "reciprocal"]
RRF_K = 60
DISTANT_SCORE_SHARE = 0.6
MIN_HITS_FOR_BASELINE = 100
LONG_TEXT_FACTOR = 2.0


def fuse_arms(
    hits_by_arm: Mapping[str, Sequence[SearchHit]],
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


def _normalize_scores(arm: str, hits: Sequence[SearchHit]) -> list[float]:
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


def _reciprocal_rank_scores(hits: Sequence[SearchHit]) -> list[float]:
    return [(RRF_K + 1) / (RRF_K + rank) for rank in range(1, len(hits) + 1)]


def find_unembedded(
    word_hits: Iterable[SearchHit], vector_hits: Sequence[SearchHit]
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
    hits: Sequence[SearchHit],
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

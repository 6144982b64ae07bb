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
    """Fuses the hits of all arms, each best first, into scored memories, best first.

    Scores are in 0..1: an arm's weight is its share of the weights of all arms with hits.
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
                ranks = {**existing.arm_ranks, arm: rank}
                raw_scores = {**existing.raw_scores, arm: hit.score}
                fused[memory_id] = ScoredMemory(memory_id, score, ranks, raw_scores, score)
    return sort_by_score(fused.values())


def _normalize_scores(arm: str, hits: Sequence[SearchHit]) -> list[float]:
    """Scales each hit's score between the arm's baseline and its best score to 0..1.

    The cosine of an unrelated text depends on the model. So the baseline of the vector arm is its
    last hit if it has many. Few hits may all be related, so then it is 0.6 of the best score if
    that is lower.
    """
    best, last = hits[0].score, hits[-1].score
    base = 0.0
    if arm == "meaning":
        has_many = len(hits) >= MIN_HITS_FOR_BASELINE
        base = last if has_many else min(last, DISTANT_SCORE_SHARE * best)
    return [(hit.score - base) / (best - base) if best > base else 1.0 for hit in hits]


def _reciprocal_rank_scores(hits: Sequence[SearchHit]) -> list[float]:
    return [(RRF_K + 1) / (RRF_K + rank) for rank in range(1, len(hits) + 1)]


def find_unembedded(
    word_hits: Iterable[SearchHit], vector_hits: Sequence[SearchHit]
) -> frozenset[UUID]:
    """Finds memories that had no vectors yet when they were searched; none without vector hits."""
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
    """Rescores memories by one more arm, which adds none of its own; best first.

    `hits` are some of `memories`, best first. The arm's share of their scores is `weight`, and
    twice that for `long_ids`: the arm reads the best passage of a long text, the word arm all of
    it. Memories without a hit keep their score.
    """
    if not hits or not weight:
        return list(memories)
    shares = _normalize_scores(arm, hits) if method == "weighted" else _reciprocal_rank_scores(hits)
    by_id = {memory.id: memory for memory in memories}
    for rank, (hit, share) in enumerate(zip(hits, shares, strict=True), start=1):
        memory = by_id[hit.id]
        effective_weight = min(1.0, LONG_TEXT_FACTOR * weight) if hit.id in long_ids else weight
        score = (1 - effective_weight) * memory.score + effective_weight * share
        by_id[hit.id] = memory._replace(
            score=score,
            arm_ranks={**memory.arm_ranks, arm: rank},
            raw_scores={**memory.raw_scores, arm: hit.score},
            fused_score=score,
        )
    return sort_by_score(by_id.values())

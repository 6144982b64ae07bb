"""Fuses the hits of the retrieval arms into one score per memory.

Arms are fused by a weighted sum of their normalized scores, or by reciprocal ranks (Cormack,
Clarke & Büttcher 2009). The sum keeps the distance between a good hit and a poor one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from reverie.domain.retrieval.candidates import (
    NO_CANDIDATES,
    ArmHits,
    Candidates,
    find_positions,
)
from reverie.domain.retrieval.ranking_facts import BoolArray, FloatArray

ARM_WEIGHTS: Mapping[str, float] = {"words": 0.45, "meaning": 0.55}
FusionMethod = Literal["weighted", "reciprocal"]
RRF_K = 60
DISTANT_SCORE_SHARE = 0.6
MIN_HITS_FOR_BASELINE = 100
LONG_TEXT_FACTOR = 2.0


def fuse_arms(
    hits_by_arm: Mapping[str, ArmHits],
    weights: Mapping[str, float] = ARM_WEIGHTS,
    method: FusionMethod = "weighted",
) -> Candidates:
    """Fuses the hits of all arms into candidates, best first.

    Scores are in 0..1: an arm's weight is its share of the weights of all arms with hits.
    """
    active_arms = {
        arm: hits
        for arm, hits in sorted(hits_by_arm.items())
        if len(hits) and weights.get(arm, 0.0) > 0
    }
    if not active_arms:
        return NO_CANDIDATES
    total_weight = sum(weights[arm] for arm in active_arms)
    docs = np.unique(np.concatenate([hits.docs for hits in active_arms.values()]))
    scores = np.zeros(len(docs))
    ranks, raw_scores = {}, {}
    for arm, hits in active_arms.items():
        rows = np.searchsorted(docs, hits.docs)
        scores[rows] += weights[arm] / total_weight * _compute_shares(arm, hits, method)
        ranks[arm] = np.zeros(len(docs), np.int32)
        ranks[arm][rows] = np.arange(1, len(hits) + 1)
        raw_scores[arm] = np.full(len(docs), np.nan)
        raw_scores[arm][rows] = hits.scores
    return Candidates(docs, scores, scores, ranks, raw_scores).sort()


def _compute_shares(arm: str, hits: ArmHits, method: FusionMethod) -> FloatArray:
    """Scales each hit's score between the arm's baseline and its best score to 0..1.

    The cosine of an unrelated text depends on the model. So the baseline of the vector arm is its
    last hit if it has many. Few hits may all be related, so then it is 0.6 of the best score if
    that is lower. Reciprocal ranks ignore scores.
    """
    if method == "reciprocal":
        return (RRF_K + 1) / (RRF_K + np.arange(1, len(hits) + 1, dtype=np.float64))
    best, last = float(hits.scores[0]), float(hits.scores[-1])
    base = 0.0
    if arm == "meaning":
        has_many = len(hits) >= MIN_HITS_FOR_BASELINE
        base = last if has_many else min(last, DISTANT_SCORE_SHARE * best)
    return (hits.scores - base) / (best - base) if best > base else np.ones(len(hits))


def find_unembedded(candidates: Candidates, is_whole: BoolArray) -> BoolArray:
    """Finds candidates that words found before they had vectors; none without vector hits.

    `is_whole`: which candidates have vectors now.
    """
    ranks = candidates.ranks
    if "meaning" not in ranks or "words" not in ranks:
        return np.zeros(len(candidates), np.bool_)
    found_by_words_alone: BoolArray = (ranks["words"] > 0) & (ranks["meaning"] == 0)
    return found_by_words_alone & ~is_whole


def rescore_with_arm(
    candidates: Candidates,
    arm: str,
    hits: ArmHits,
    weight: float,
    method: FusionMethod = "weighted",
) -> Candidates:
    """Rescores candidates by one more arm, which adds none of its own; best first.

    `hits` are some of the candidates. The arm's share of their scores is `weight`, and twice that
    for long texts: the arm reads the best passage of a long text, the word arm all of it.
    Candidates without a hit keep their score.
    """
    if not len(hits) or not weight:
        return candidates
    rows = find_positions(candidates.docs, hits.docs)
    shares = _compute_shares(arm, hits, method)
    weights = np.full(len(hits), weight)
    if hits.long is not None:
        weights[hits.long] = min(1.0, LONG_TEXT_FACTOR * weight)
    scores, fused = candidates.scores.copy(), candidates.fused.copy()
    scores[rows] = (1 - weights) * scores[rows] + weights * shares
    fused[rows] = scores[rows]
    ranks = np.zeros(len(candidates), np.int32)
    ranks[rows] = np.arange(1, len(hits) + 1)
    raw_scores = np.full(len(candidates), np.nan)
    raw_scores[rows] = hits.scores
    return replace(
        candidates,
        scores=scores,
        fused=fused,
        ranks={**candidates.ranks, arm: ranks},
        raw_scores={**candidates.raw_scores, arm: raw_scores},
    ).sort()

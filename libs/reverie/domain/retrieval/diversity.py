"""Diversification of search results by maximal marginal relevance (MMR) over the words of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

MMR_LAMBDA = 0.7
_WORD = re.compile(r"[^\W_]+|[\u3400-\u9fff]")


def tokenize(text: str) -> frozenset[str]:
    """The words of a text, folded; Chinese by sign."""
    return frozenset(_WORD.findall(text.casefold()))


def jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """Jaccard: what two sets share of what they hold together, 0..1."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def diversify(
    scores: Sequence[float],
    token_sets: Sequence[frozenset[str]],
    limit: int,
    weight: float = MMR_LAMBDA,
) -> list[tuple[int, float]]:
    """The places of the best `limit` texts, and each one's likeness to what was taken before it.

    Maximal marginal relevance (Carbonell & Goldstein 1998): at each step the greatest
    `weight * score - (1 - weight) * likeness` to the likest taken already, scores as shares of
    the best; ties go to the earlier place.
    """
    if not scores:
        return []
    best = max(scores) or 1.0
    max_similarity, compared_count = [0.0] * len(scores), [0] * len(scores)
    queue = [(-weight * score / best, index) for index, score in enumerate(scores)]
    heapify(queue)
    selected: list[tuple[int, float]] = []
    while queue and len(selected) < limit:
        _, index = queue[0]
        if compared_count[index] == len(selected):
            heappop(queue)
            selected.append((index, max_similarity[index]))
            continue
        # What it is worth only falls, so that none is compared before it comes to be the best.
        for other, _ in selected[compared_count[index] :]:
            max_similarity[index] = max(
                max_similarity[index], jaccard_similarity(token_sets[index], token_sets[other])
            )
        compared_count[index] = len(selected)
        current_score = weight * scores[index] / best - (1 - weight) * max_similarity[index]
        heapreplace(queue, (-current_score, index))
    return selected

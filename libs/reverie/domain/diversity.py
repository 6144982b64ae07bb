"""Not the same thing twice: maximal marginal relevance over the words of texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

LAMBDA = 0.7
_WORD = re.compile(r"[^\W_]+|[\u3400-\u9fff]")


def tokens(text: str) -> frozenset[str]:
    """The words of a text, folded; Chinese by sign."""
    return frozenset(_WORD.findall(text.casefold()))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard: what two sets share of what they hold together, 0..1."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def diversify(
    scores: Sequence[float], texts: Sequence[frozenset[str]], limit: int, weight: float = LAMBDA
) -> list[tuple[int, float]]:
    """The places of the best `limit` texts, and each one's likeness to what was taken before it.

    Maximal marginal relevance (Carbonell & Goldstein 1998): at each step the greatest
    `weight * score - (1 - weight) * likeness` to the likest taken already, scores as shares of
    the best; ties go to the earlier place.
    """
    if not scores:
        return []
    best = max(scores) or 1.0
    near, compared = [0.0] * len(scores), [0] * len(scores)
    worth = [(-weight * score / best, place) for place, score in enumerate(scores)]
    heapify(worth)
    taken: list[tuple[int, float]] = []
    while worth and len(taken) < limit:
        _, place = worth[0]
        if compared[place] == len(taken):
            heappop(worth)
            taken.append((place, near[place]))
            continue
        # What it is worth only falls, so that none is compared before it comes to be the best.
        for other, _ in taken[compared[place] :]:
            near[place] = max(near[place], likeness(texts[place], texts[other]))
        compared[place] = len(taken)
        now = weight * scores[place] / best - (1 - weight) * near[place]
        heapreplace(worth, (-now, place))
    return taken

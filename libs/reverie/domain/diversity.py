"""Not the same thing twice: maximal marginal relevance over the words of texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

LAMBDA = 0.7
_WORD = re.compile(r"[^\W_]+|[\u3400-\u9fff]")


def tokens(text: str) -> frozenset[str]:
    """The words of a text, folded; Chinese by sign."""
    return frozenset(map(str.casefold, _WORD.findall(text)))


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
    near = [0.0] * len(scores)
    left = list(range(len(scores)))
    taken: list[tuple[int, float]] = []
    while left and len(taken) < limit:
        place = max(left, key=lambda i: (weight * scores[i] / best - (1 - weight) * near[i], -i))
        left.remove(place)
        taken.append((place, near[place]))
        for other in left:
            near[other] = max(near[other], likeness(texts[place], texts[other]))
    return taken

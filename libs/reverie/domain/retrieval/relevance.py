"""How surely a memory answers a question: an absolute measure, comparable across questions.

The score of a recall ranks the memories of one answer; the best of nothing is still the best. The
relevance is a logistic regression over likenesses that depend on the question and the text alone:
the cosine of their vectors, the inner product of their sparse vectors as a share of the question's
length, and the share of the question's words in the text. The coefficients were fitted on one half
of the questions of benchmarks/quality/relevance.py, which reports the other half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reverie.domain.text.index_terms import fold_to_simplified

DEFAULT_THRESHOLD = 0.6


class Likeness(NamedTuple):
    """How like a text is to a question; None for what is not known.

    `cosine`: -1 to 1. `sparse`: inner product of the sparse vectors, by the question's length.
    `words`: the share of the question's distinctive words in the text, 0 to 1.
    """

    cosine: float | None
    sparse: float | None
    words: float


_WITHOUT_COSINE = {
    True: (-5.31, 0.0, 2.16, 3.85),
    False: (-3.66, 0.0, 0.0, 9.13),
}
_BY_MODEL = {
    "bge-small-en-v1.5": {
        True: (-14.76, 17.76, 0.92, 3.99),
        False: (-16.96, 22.09, 0.0, 5.81),
    },
    "multilingual-e5-small-q4": dict.fromkeys((True, False), (-28.11, 29.82, 0.0, 7.61)),
}
"""Bias, then the coefficients of cosine, sparse product and words, by whether the sparse product is
known. The cosines of each model have their own scale: those of a model that is not here are not
used. The sparse encoder reads English: beside the multilingual model its product adds nothing."""


def compute_relevance(likeness: Likeness, model: str) -> float:
    """Computes the relevance, 0 to 1, of a text whose cosine is of vectors of that model."""
    cosine, sparse, words = likeness
    table = _WITHOUT_COSINE if cosine is None else _BY_MODEL.get(model, _WITHOUT_COSINE)
    bias, by_cosine, by_sparse, by_words = table[sparse is not None]
    logit = bias + by_cosine * (cosine or 0.0) + by_sparse * (sparse or 0.0) + by_words * words
    return 1 / (1 + math.exp(-logit))


def compute_word_share(words: Sequence[str], text: str) -> float:
    """The share of distinctive words of a question that occur in a text; 0 without any."""
    folded = fold_to_simplified(text).casefold()
    return sum(word in folded for word in words) / len(words) if words else 0.0


def compute_length(word_weights: Mapping[int, float]) -> float:
    """The Euclidean length of a sparse vector."""
    return math.sqrt(sum(weight * weight for weight in word_weights.values()))

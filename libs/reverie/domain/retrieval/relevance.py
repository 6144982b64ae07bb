"""How surely a memory answers a question: an absolute measure, comparable across questions.

The score of a recall ranks the memories of one answer; the best of nothing is still the best. The
relevance is a logistic regression over figures that depend on the question and the text alone: the
cosine of their vectors, the inner product of their sparse vectors as a share of the question's
length, the share of the question's words in the text, and the length of the text, because a long
text has words of any question. The coefficients were fitted on one half of the questions of
benchmarks/quality/relevance.py, which reports the other half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reverie.domain.text.index_terms import index_text

DEFAULT_THRESHOLD = 0.6
WORD_CHARS = 6
"""Words with the same first characters count as one, such as `configure` and `configuration`."""
MAX_RATED_CHARS = 20_000
"""Of a longer text only the beginning is compared."""


class Likeness(NamedTuple):
    """How like a text is to a question; None for what is not known.

    `cosine`: -1 to 1. `sparse`: inner product of the sparse vectors, by the question's length.
    `words`: the share of the question's distinctive words in the text, 0 to 1. `length`: of the
    text in characters.
    """

    cosine: float | None
    sparse: float | None
    words: float
    length: int


_WITHOUT_COSINE = {
    True: (-1.54, 0.0, 1.69, 8.40, -0.77),
    False: (-1.79, 0.0, 0.0, 12.66, -0.48),
}
_BY_MODEL = {
    "bge-small-en-v1.5": {
        True: (-17.87, 29.27, 0.6, 7.29, -0.95),
        False: (-19.49, 31.82, 0.0, 8.93, -0.9),
    },
    "multilingual-e5-small-q4": dict.fromkeys((True, False), (-28.11, 29.82, 0.0, 7.61, 0.0)),
}
"""Bias, then the coefficients of cosine, sparse product, words and logarithm of the length, by
whether the sparse product is known. The cosines of each model have their own scale: those of a
model that is not here are not used. The sparse encoder reads English: beside the multilingual model
its product adds nothing. The biases of the English model are raised by 0.41 after the fit, so that
even odds give `DEFAULT_THRESHOLD`."""


def compute_relevance(likeness: Likeness, model: str) -> float:
    """Computes the relevance, 0 to 1, of a text whose cosine is of vectors of that model."""
    cosine, sparse, words, length = likeness
    table = _WITHOUT_COSINE if cosine is None else _BY_MODEL.get(model, _WITHOUT_COSINE)
    bias, by_cosine, by_sparse, by_words, by_length = table[sparse is not None]
    logit = bias + by_cosine * (cosine or 0.0) + by_sparse * (sparse or 0.0) + by_words * words
    return 1 / (1 + math.exp(-logit - by_length * math.log1p(length)))


def compute_text_relevance(words: Sequence[str], text: str) -> float:
    """The relevance of a text that has no vectors to a question of these distinctive words."""
    return compute_relevance(Likeness(None, None, compute_word_share(words, text), len(text)), "")


def compute_word_share(words: Sequence[str], text: str) -> float:
    """The share of distinctive words of a question that occur in a text; 0 without any."""
    if not words:
        return 0.0
    known = {_cut(word) for word in index_text(text[:MAX_RATED_CHARS]).split()}
    return sum(_cut(word) in known for word in words) / len(words)


def _cut(word: str) -> str:
    """The part of a word that its forms share: `limit` for `limits`."""
    return word.rstrip("s")[:WORD_CHARS]


def compute_length(word_weights: Mapping[int, float]) -> float:
    """The Euclidean length of a sparse vector."""
    return math.sqrt(sum(weight * weight for weight in word_weights.values()))

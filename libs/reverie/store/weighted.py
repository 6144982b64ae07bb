"""Weighted words of a learned sparse model, as Postgres keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from pgvector import SparseVector

WORDS = 30_522
"""Words of the vocabulary of the model whose table stands."""


def sparse_vector(words: Mapping[int, float]) -> SparseVector:
    """The words, by their number, as a `sparsevec`."""
    return SparseVector(dict(words), WORDS)


def weighted(vector: SparseVector) -> dict[int, float]:
    """A `sparsevec` as words by their number."""
    return dict(zip(vector.indices(), vector.values(), strict=True))

"""Decodes what the statements of the recall index send into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reverie.domain.retrieval.ranking_facts import PACKED_FACTS, decode_facts
from reverie.domain.retrieval.recall_index import (
    MAX_INTEGER,
    MAX_SCALE,
    MAX_WEIGHT,
    Edges,
    IndexEntries,
    Passages,
    WordEntries,
)

_WORD = np.dtype([("doc", ">i8"), ("term", ">i4"), ("count", ">i2")])
_EDGE = np.dtype([("source", ">i8"), ("target", ">i8"), ("weight", ">f4"), ("kind", ">i2")])
_RANK = np.dtype([("doc", ">i8"), ("rank", ">f4")])
_VECTOR_HEADER = 2
"""A `halfvec` is sent as its dimensions and 0, then its numbers, in 16 bits each."""
_SPARSE_HEADER = 3
"""A `sparsevec` is sent as its dimensions, how many words it has, 0, these, and their weights."""


def decode_entries(row: Mapping[str, Any], dims: int) -> IndexEntries:
    """Decodes the columns of `index_entries`; the other statements have some of them each."""
    words = np.frombuffer(row["words"] or b"", _WORD)
    edges = np.frombuffer(row["edges"] or b"", _EDGE)
    docs = np.frombuffer(row["docs"] or b"", ">i8").astype(np.int64)
    vectors, scales = quantize(_decode_vectors(row["vectors"] or b"", len(docs), dims))
    packed = np.frombuffer(row["facts"] or b"", PACKED_FACTS)
    sizes = np.frombuffer(row["sizes"] or b"", ">i4")
    return IndexEntries(
        decode_facts(packed),
        packed["session"].astype(np.uint64),
        packed["terms"].astype(np.int32),
        row["scopes"] or (),
        WordEntries(
            words["doc"].astype(np.int64),
            words["term"].astype(np.int32),
            words["count"].astype(np.uint8),
        ),
        Passages(docs, vectors, scales, *_decode_sparse(row["sparse"] or b"", sizes)),
        Edges(
            edges["source"].astype(np.int64),
            edges["target"].astype(np.int64),
            edges["kind"].astype(np.uint8),
            np.rint(edges["weight"] * MAX_WEIGHT).astype(np.uint16),
        ),
    )


def decode_ranks(raw: bytes | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The numbers of memories, and their ranks."""
    ranks = np.frombuffer(raw or b"", _RANK)
    return ranks["doc"].astype(np.int64), ranks["rank"].astype(np.float32)


def quantize(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Vectors of length 1 as integers, and the scale of each, in shares of `MAX_SCALE`.

    The cosine changes by less than 1e-5, and integers of 16 bits become floats ten times as fast
    as floats of 16 bits do.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1)
    highest = np.minimum(np.abs(units).max(axis=1, initial=0.0), 1.0)
    scales = np.maximum(np.ceil(highest * MAX_SCALE), 1).astype(np.uint8)
    integers = np.rint(units * (MAX_INTEGER * MAX_SCALE / scales.astype(np.float32))[:, None])
    return integers.astype(np.int16), scales


def _decode_vectors(raw: bytes, count: int, dims: int) -> NDArray[np.float32]:
    numbers = np.frombuffer(raw, ">f2").reshape(count, dims + _VECTOR_HEADER)
    return numbers[:, _VECTOR_HEADER:].astype(np.float32)


def _decode_sparse(raw: bytes, sizes: NDArray[np.integer[Any]]) -> Sequence[NDArray[Any]]:
    """How many words each vector has, the scale of its weights, all words, and all weights."""
    numbers = np.frombuffer(raw, ">i4")
    lengths = sizes.astype(np.int64) // 4
    begins = (np.cumsum(lengths) - lengths)[lengths > 0]
    counts = np.zeros(len(lengths), np.uint8)
    counts[lengths > 0] = numbers[begins + 1]
    place = np.arange(len(numbers)) - np.repeat(begins, lengths[lengths > 0]) - _SPARSE_HEADER
    own = np.repeat(counts[lengths > 0], lengths[lengths > 0])
    words = numbers[(place >= 0) & (place < own)].astype(np.uint16)
    weights = numbers[place >= own].view(">f4").astype(np.float32)
    sizes_of_own = counts[counts > 0].astype(np.int64)
    scales = np.zeros(len(counts), np.float32)
    if len(weights):
        highest = np.maximum.reduceat(weights, np.cumsum(sizes_of_own) - sizes_of_own)
        scales[counts > 0] = highest / MAX_WEIGHT
    integers = np.rint(weights / np.repeat(scales, counts)).astype(np.uint16)
    return counts, scales, words, integers

"""Decodes the rows of the statements in recall_index.sql into the arrays of a recall index."""

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
    """Decodes a row of `index_entries`, or the joined rows of the other statements."""
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
    """How many words each vector has, the scale of its weights, all words, and all weights.

    `sizes`: the bytes of each vector in `raw`; 0 for a passage without one.
    """
    numbers = np.frombuffer(raw, ">i4")
    lengths = sizes.astype(np.int64) // 4
    present = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[present]
    counts = np.zeros(len(lengths), np.uint8)
    counts[present] = numbers[starts + 1]
    # Of each number: its place behind the header of its vector, and how many words that has.
    places = np.arange(len(numbers)) - np.repeat(starts, lengths[present]) - _SPARSE_HEADER
    word_counts = np.repeat(counts[present], lengths[present])
    words = numbers[(places >= 0) & (places < word_counts)].astype(np.uint16)
    weights = numbers[places >= word_counts].view(">f4").astype(np.float32)
    scales = np.zeros(len(counts), np.float32)
    if len(weights):
        filled = counts[counts > 0].astype(np.int64)
        highest = np.maximum.reduceat(weights, np.cumsum(filled) - filled)
        scales[counts > 0] = highest / MAX_WEIGHT
    integers = np.rint(weights / np.repeat(scales, counts)).astype(np.uint16)
    return counts, scales, words, integers

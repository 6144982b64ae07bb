"""What a recall index takes of memory, and how it compares many vectors."""

from __future__ import annotations

import numpy as np
import pytest

from reverie.domain.core.kinds import EdgeKind
from reverie.domain.retrieval import index_search, recall_index
from reverie.domain.retrieval.candidates import EDGE_KINDS
from reverie.domain.retrieval.ranking_facts import ACTIVE, FACTS, WHOLE, FactRecords
from reverie.domain.retrieval.recall_index import (
    Edges,
    IndexEntries,
    Passages,
    WordEntries,
    build_index,
)

MEMORIES, DIMS = 10_000, 384
WORDS, SPARSE_WORDS, EDGES, SESSION_SIZE = 25, 97, 3, 20
"""Of a memory of some 200 characters; an edge is an edge of two memories."""
MAX_BYTES = 1_500


def make_entries(count: int) -> IndexEntries:
    """Memories with as much as one of some 200 characters has, all of one scope."""
    chance = np.random.default_rng(1)
    docs = np.arange(count)
    facts: FactRecords = np.zeros(count, FACTS)
    facts["doc"] = facts["id_low"] = docs
    facts["status"], facts["flags"] = ACTIVE, WHOLE
    return IndexEntries(
        facts,
        (docs // SESSION_SIZE + 1).astype(np.uint64),
        np.full(count, WORDS, np.int32),
        ["project/p"] * count,
        WordEntries(
            np.repeat(docs, WORDS),
            chance.integers(0, 20_000, count * WORDS).astype(np.int32),
            np.ones(count * WORDS, np.uint8),
        ),
        Passages(
            docs,
            chance.integers(-(2**15), 2**15, (count, DIMS)).astype(np.int16),
            np.ones(count, np.uint8),
            np.full(count, SPARSE_WORDS, np.uint8),
            np.ones(count, np.float32),
            chance.integers(0, 30_000, count * SPARSE_WORDS).astype(np.uint16),
            np.ones(count * SPARSE_WORDS, np.uint16),
        ),
        Edges(
            np.repeat(docs, EDGES),
            chance.choice(docs, count * EDGES),
            np.full(count * EDGES, EDGE_KINDS.index(EdgeKind.RELATES_TO), np.uint8),
            np.ones(count * EDGES, np.uint16),
        ),
    )


def test_a_memory_takes_at_most_1500_bytes() -> None:
    index = build_index(make_entries(MEMORIES))
    per_memory = index.nbytes / MEMORIES
    assert per_memory <= MAX_BYTES
    # All of it is counted: the vectors alone take half.
    assert per_memory > 2 * DIMS + 4 * SPARSE_WORDS + 5 * WORDS + 2 * 11 * EDGES + FACTS.itemsize


@pytest.mark.parametrize("scopes", [["*"], ["project/q"]])
def test_of_many_vectors_those_with_most_signs_in_common_are_compared(
    monkeypatch: pytest.MonkeyPatch, scopes: list[str]
) -> None:
    chance = np.random.default_rng(2)
    centres = chance.normal(size=(200, DIMS))
    near = centres[np.arange(4_000) % 200] + 0.5 * chance.normal(size=(4_000, DIMS))
    vectors = np.rint(near / np.abs(near).max() * (2**15 - 1)).astype(np.int16)
    made = make_entries(4_000)
    entries = made._replace(
        passages=made.passages._replace(vectors=vectors),
        scopes=["project/p", "project/q"] * 2_000,
    )

    def find(limit: int) -> list[list[int]]:
        index = build_index(entries)
        rows = index_search.build_filter(index, scopes, ["active"], None)
        questions = [centre.astype(np.float32) for centre in centres[1:40:2]]
        found = [index_search.search_vectors(index, [asked], rows, limit) for asked in questions]
        return [hits.docs.tolist() for hits in found]

    exact = find(10)
    assert {len(docs) for docs in exact} == {10}
    for module in (recall_index, index_search):
        monkeypatch.setattr(module, "MAX_COMPARED", 1_000)
    assert find(10) == exact
    assert all(10 < len(docs) < 4_000 / 4 for docs in find(4_000))

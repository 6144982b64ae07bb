"""Keeps memories that replaced or contradicted others before them, in every selection.

`successors` maps a memory to the one that replaced it, or that contradicts it and is later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

import numpy as np

from reverie.domain.retrieval.candidates import ScoredMemory, find_positions
from reverie.domain.retrieval.ranking_facts import FactRecords, FloatArray, IntArray, list_ids

DEMOTION_FACTOR = 0.95
MIN_SUCCESSOR_SCORE = 1e-6
"""A successor has a score above 0, so that there is something below it."""

Successors = Mapping[UUID, UUID]


def map_successors(records: FactRecords) -> dict[UUID, UUID]:
    """Maps each memory that was replaced or contradicted to its successor, if both are there."""
    successors = find_positions(records["doc"], records["successor"])
    old = np.flatnonzero(successors >= 0)
    ids = list_ids(records[old]), list_ids(records[successors[old]])
    return dict(zip(*ids, strict=True))


def iterate_successors(memory_id: UUID, successors: Successors) -> Iterator[UUID]:
    """Yields what replaced a memory, then what replaced that, and so on."""
    seen = {memory_id}
    while (successor := successors.get(memory_id)) and successor not in seen:
        seen.add(successor)
        yield successor
        memory_id = successor


def rank_successors_first(
    scores: FloatArray, successors: IntArray, superseded_factors: FloatArray
) -> FloatArray:
    """Ranks replaced memories just below the memories that replaced them, if both were found.

    A successor takes the score of what it replaced, without the factor for that, if it is higher:
    it answers the same questions, whatever its words. `successors`: positions, -1 for none.
    """
    chains = {
        old: chain
        for old in np.flatnonzero(successors >= 0).tolist()
        if (chain := [*_iterate_chain(old, successors)])
    }
    ranked = scores.copy()
    for old, chain in chains.items():
        least = max(ranked[old] / superseded_factors[old], MIN_SUCCESSOR_SCORE)
        for newer in chain:
            ranked[newer] = max(ranked[newer], least)
    for old in sorted(chains, key=lambda old: len(chains[old])):
        ranked[old] = min(ranked[old], DEMOTION_FACTOR * ranked[chains[old][0]])
    return ranked


def _iterate_chain(old: int, successors: IntArray) -> Iterator[int]:
    seen = {old}
    while (newer := int(successors[old])) >= 0 and newer not in seen:
        seen.add(newer)
        yield newer
        old = newer


def list_successors_first(
    memories: Iterable[ScoredMemory], pool: Iterable[ScoredMemory], successors: Successors
) -> list[ScoredMemory]:
    """Puts before each memory its successors from `pool`, the latest first."""
    by_id = {memory.id: memory for memory in pool}
    ordered: dict[UUID, ScoredMemory] = {}
    for memory in memories:
        chain = [newer for newer in iterate_successors(memory.id, successors) if newer in by_id]
        for memory_id in (*reversed(chain), memory.id):
            ordered.setdefault(memory_id, by_id[memory_id])
    return list(ordered.values())

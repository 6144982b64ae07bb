"""Keeps memories that replaced or contradicted others before them, in every selection.

`successors` maps a memory to the one that replaced it, or that contradicts it and is later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from reverie.domain.retrieval.candidates import (
    RecallCandidate,
    ScoredMemory,
    sort_by_score,
)

DEMOTION_FACTOR = 0.95
MIN_SUCCESSOR_SCORE = 1e-6
"""A successor has a score above 0, so that there is something below it."""

Successors = Mapping[UUID, UUID]


def find_successors(candidates: Mapping[UUID, RecallCandidate]) -> dict[UUID, UUID]:
    """Maps each candidate that was replaced or contradicted to its successor."""
    return {
        memory_id: successor
        for memory_id, candidate in candidates.items()
        if (successor := candidate.facts.superseded_by)
    }


def iterate_successors(memory_id: UUID, successors: Successors) -> Iterator[UUID]:
    """Yields what replaced a memory, then what replaced that, and so on."""
    seen = {memory_id}
    while (successor := successors.get(memory_id)) and successor not in seen:
        seen.add(successor)
        yield successor
        memory_id = successor


def rank_successors_first(
    memories: Sequence[ScoredMemory], successors: Successors
) -> list[ScoredMemory]:
    """Ranks replaced memories just below the memories that replaced them, if both were found.

    A successor takes the score of what it replaced, if that is higher: it answers the same
    questions, whatever its words.
    """
    by_id = {memory.id: memory for memory in memories}
    chains = {
        memory_id: [newer for newer in iterate_successors(memory_id, successors) if newer in by_id]
        for memory_id in by_id
        if memory_id in successors
    }
    for memory_id, chain in chains.items():
        old = by_id[memory_id]
        least = max(old.score / old.factors.get("superseded", 1.0), MIN_SUCCESSOR_SCORE)
        for newer in chain:
            by_id[newer] = _with_successor_factor(by_id[newer], max(by_id[newer].score, least))
    for memory_id in sorted(chains, key=lambda memory_id: len(chains[memory_id])):
        for newer in chains[memory_id][:1]:
            most = DEMOTION_FACTOR * by_id[newer].score
            old = by_id[memory_id]
            by_id[memory_id] = _with_successor_factor(old, min(old.score, most))
    return sort_by_score(by_id.values())


def _with_successor_factor(memory: ScoredMemory, score: float) -> ScoredMemory:
    if memory.score in (0.0, score):
        return memory._replace(score=score)
    factor = memory.factors.get("successor", 1.0) * score / memory.score
    return memory._replace(score=score, factors={**memory.factors, "successor": round(factor, 4)})


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

"""Compares new memories with existing ones: same, refined, contradicting, or new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from reverie.domain.core.memory import NewMemory
from reverie.domain.extraction.amendments import find_amendment
from reverie.domain.graph.duplicate_detection import (
    ComparedMemory,
    DuplicateVerdict,
    compare_memories,
)
from reverie.domain.text.index_terms import searched_text
from reverie.store.sessions.dream_queue import DreamLease, ExistingMatch
from reverie_services.dream.dependencies import DigestDependencies

MAX_CANDIDATES = 12
_MIN_ID = UUID(int=0)
Verdict = Literal["same", "refined", "contradicting"]
_VERDICT_NAMES: dict[DuplicateVerdict, Verdict] = {
    DuplicateVerdict.DUPLICATE: "same",
    DuplicateVerdict.REFINED: "refined",
    DuplicateVerdict.CONTRADICTING: "contradicting",
}
"""Verdicts on an existing memory, strongest first; `same` includes one with more detail."""


async def compare_with_existing(
    deps: DigestDependencies, lease: DreamLease, items: Sequence[NewMemory]
) -> dict[UUID, ExistingMatch]:
    """Compares new memories with existing ones; returns the matches by id of the new memory.

    A memory that matches nothing is not in the result. Memories with a key are not compared: the
    key names what they replace. Nor are those of another scope, which their enrichment compares.
    """
    matches: dict[UUID, ExistingMatch] = {}
    matched_ids: set[UUID] = set()
    for item in items:
        if item.key is not None or item.scope != lease.scope:
            continue
        existing = await deps.dreams.find_similar(lease, item.words, MAX_CANDIDATES)
        # Long texts take long to compare: the event loop goes on meanwhile.
        match = await asyncio.to_thread(_find_match, item, existing, frozenset(matched_ids))
        if match:
            matches[item.id] = match
            matched_ids.add(match.id)
    return matches


def _find_match(
    item: NewMemory,
    existing: Sequence[tuple[UUID, int, ComparedMemory]],
    matched_ids: frozenset[UUID],
) -> ExistingMatch | None:
    """Finds the existing memory with the strongest verdict, in the order of `_VERDICT_NAMES`.

    Of several that differ by value, the newest is returned.
    """
    if record := item.metadata.get("record"):
        for id, version, other in existing:
            amendment = find_amendment(record, other.content)
            if amendment and id not in matched_ids and _is_later(item, other):
                relation: Verdict = "refined" if amendment.is_whole else "contradicting"
                return ExistingMatch(id, version, relation, amendment.reason)
    compared = ComparedMemory(
        content=searched_text(item.content, item.metadata),
        kind=item.kind,
        files=frozenset((item.git or {}).get("files", ())),
        valid_from=item.valid_from,
    )
    judged = [
        (id, version, compare_memories(other, compared))
        for id, version, other in existing
        if id not in matched_ids
    ]
    judged.sort(
        key=lambda judgement: judgement[0] if judgement[2].differs_by_value else _MIN_ID,
        reverse=True,
    )
    for verdict, name in _VERDICT_NAMES.items():
        for id, version, comparison in judged:
            if comparison.verdict is verdict:
                # What the new one replaces is superseded, as what it refines.
                return ExistingMatch(
                    id, version, "refined" if comparison.replaces else name, comparison.reason
                )
    return None


def _is_later(item: NewMemory, other: ComparedMemory) -> bool:
    return not (item.valid_from and other.valid_from) or item.valid_from > other.valid_from

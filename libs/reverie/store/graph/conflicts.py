"""Finds what a memory that is being written contradicts, while its writer waits."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import NewMemory
from reverie.domain.graph.duplicate_detection import (
    ComparedMemory,
    DuplicateVerdict,
    compare_memories,
)
from reverie.store.db.database import Database

CANDIDATE_LIMIT = 8


@dataclass(frozen=True)
class ContradictedMemory:
    """An active memory that a new one contradicts, and why."""

    id: UUID
    content: str
    reason: str


class ConflictFinder:
    """Finds what a new memory contradicts, by words alone: an agent waits for the answer."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def find(self, principal: Principal, new: NewMemory) -> list[ContradictedMemory]:
        """What it contradicts, as far as the caller may read it, the likeliest first."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            rows = await connection.fetch_rows(
                "conflict_candidates", new.scope, new.words, list(principal.reads), CANDIDATE_LIMIT
            )
        stated = ComparedMemory(
            new.content, new.kind, new.key, new.pinned, frozenset(), new.valid_from, new.valid_to
        )
        conflicts = []
        for row in rows:
            if new.key is not None and row["key"] == new.key:
                continue
            standing = ComparedMemory(
                row["content"],
                Kind(row["kind"]),
                row["key"],
                row["pinned"],
                frozenset(),
                row["valid_from"],
                row["valid_to"],
            )
            comparison = compare_memories(standing, stated)
            if comparison.verdict is DuplicateVerdict.CONTRADICTING:
                conflicts.append(ContradictedMemory(row["id"], row["content"], comparison.reason))
        return conflicts

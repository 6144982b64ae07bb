"""Reads memories and edges as of a moment, and the origin of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.domain.core.memory import Memory, was_valid_at
from reverie.domain.retrieval.answer import AnswerEdge
from reverie.domain.retrieval.candidates import ArmHits, NeighbourEdges
from reverie.domain.retrieval.ranking_facts import FactTable, IntArray, encode_facts, number_scopes
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.search.search import SearchFilter, build_hits, build_neighbour_edges


@dataclass(frozen=True)
class OriginTurn:
    """A source turn of a memory."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: datetime


@dataclass(frozen=True)
class OriginSession:
    """The session in which a memory was learned."""

    id: UUID
    agent: str
    external_id: str | None
    project: str | None
    branch: str | None
    started: datetime
    ended: datetime | None


@dataclass(frozen=True)
class ReplacedMemory:
    """A memory that another replaced, `step` steps back."""

    id: UUID
    version: int
    content: str
    created: datetime
    agent: str | None
    step: int


@dataclass(frozen=True)
class MemoryOrigin:
    """The origin of a memory: its session, its turns, the memories it replaced."""

    session: OriginSession | None
    turns: list[OriginTurn]
    replaced: list[ReplacedMemory]


class HistoryStore:
    """Reads of earlier states; a memory forgotten since is still known at an earlier moment."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, principal: Principal, memory: UUID, at: datetime) -> Memory:
        """The memory as it was known at `at`. Raises `NotFound`."""
        found = await self.load_memories(principal, [memory], principal.reads, at)
        if memory not in found:
            raise NotFound("memory", f"{memory} at {at.isoformat()}")
        return found[memory]

    async def load_edges_around(
        self,
        principal: Principal,
        docs: IntArray,
        scopes: Sequence[str],
        fan_out: int,
        at: datetime,
    ) -> NeighbourEdges:
        """Edges at `at` between the memories of `docs` and neighbours, `fan_out` a memory."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "edges_around_as_of", docs.tolist(), list(scopes), fan_out, at
            )
        return build_neighbour_edges(found)

    async def search_words(
        self, principal: Principal, text: str, at: datetime, filters: SearchFilter, limit: int
    ) -> ArmHits:
        """Memories by BM25 of the prepared question over what was known at `at`, best first."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "search_words_as_of",
                text,
                at,
                list(filters.scopes),
                list(filters.status),
                filters.kinds,
                limit,
                filters.extra_conditions,
            )
        return build_hits(found)

    async def load_memories(
        self, principal: Principal, ids: Sequence[UUID], scopes: Sequence[str], at: datetime
    ) -> dict[UUID, Memory]:
        """The memories of `ids` as they were known at `at`."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows("memories_as_of", list(ids), list(scopes), at)
        return {row["id"]: row_mapping.parse_memory(row) for row in found}

    async def load_facts(
        self, principal: Principal, docs: IntArray, filters: SearchFilter, at: datetime
    ) -> FactTable:
        """The facts of `docs` at `at`, and which the filter lets through."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "candidates_as_of", docs.tolist(), list(filters.scopes), at
            )
        memories = [(row["doc"], row["successor"], row_mapping.parse_memory(row)) for row in found]
        passes = [_matches_filter(memory, filters) for _, _, memory in memories]
        scopes = number_scopes(memory.scope for _, _, memory in memories)
        return FactTable(encode_facts(memories), np.array(passes, np.bool_), *scopes)

    async def load_edges_among(
        self, principal: Principal, ids: Sequence[UUID], at: datetime
    ) -> list[AnswerEdge]:
        """Edges between memories of `ids` that were open at `at`."""
        async with self._db.snapshot(principal.tenant) as connection:
            found = await connection.fetch_rows("edges_as_of", list(ids), at)
        return [(row["id"], row["src"], row["dst"], row["kind"], row["weight"]) for row in found]

    async def load_origin(self, principal: Principal, memory: UUID) -> MemoryOrigin:
        """Loads session, turns and replaced memories, if the key may read them."""
        async with self._db.snapshot(principal.tenant) as connection:
            session = await connection.fetch_row(
                "provenance_session", memory, list(principal.reads)
            )
            turns = await connection.fetch_rows(
                "provenance_turns", memory, list(principal.reads), principal.agent
            )
            replaced = await connection.fetch_rows(
                "provenance_chain", memory, list(principal.reads)
            )
        return MemoryOrigin(
            session=OriginSession(**session) if session else None,
            turns=[OriginTurn(**row) for row in turns],
            replaced=[ReplacedMemory(**row) for row in replaced],
        )


def _matches_filter(memory: Memory, filters: SearchFilter) -> bool:
    at = memory.valid_from or memory.created_at
    return (
        memory.status.value in filters.status
        and (filters.kinds is None or memory.kind.value in filters.kinds)
        and (filters.tiers is None or memory.tier.value in filters.tiers)
        and (filters.tags is None or set(filters.tags) <= set(memory.tags))
        and (filters.since is None or filters.since <= at)
        and (filters.until is None or at < filters.until)
        and (filters.valid_at is None or was_valid_at(memory, filters.valid_at))
    )

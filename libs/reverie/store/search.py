"""The arms of recall: words by BM25, meaning by vectors, neighbours by edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from reverie.domain.access import Principal
from reverie.domain.memory import Memory
from reverie.store import rows
from reverie.store.database import Database, Tenant

EXACT_UP_TO = 20_000


@dataclass(frozen=True)
class Corpus:
    """What BM25 needs of the whole: how many documents, and their mean length in words."""

    documents: float
    mean_length: float


@dataclass(frozen=True)
class Scored:
    """A memory that an arm found, with that arm's own score."""

    id: UUID
    score: float


@dataclass(frozen=True)
class TurnHit:
    """A turn that the word arm found."""

    id: UUID
    session: UUID
    ord: int
    role: str
    content: str
    at: datetime
    scope: str
    agent: str
    score: float


@dataclass(frozen=True)
class Link:
    """An open edge, seen from one memory of a list."""

    near: UUID
    far: UUID
    kind: str
    weight: float


@dataclass(frozen=True)
class Filter:
    """What a search may return: readable scope patterns, statuses, kinds (None: all)."""

    scopes: Sequence[str]
    status: Sequence[str]
    kinds: Sequence[str] | None = None


class Search:
    """Searches within one tenant."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def words(self, who: Principal, text: str, only: Filter, limit: int) -> list[Scored]:
        """Memories by BM25 of the prepared question `text`, best first."""
        async with self._db.tenant(who.tenant) as tenant:
            corpus = await _corpus(tenant, "corpus")
            found = await tenant.rows(
                "search_words",
                text,
                list(only.scopes),
                list(only.status),
                corpus.documents,
                corpus.mean_length,
                limit,
                only.kinds,
            )
        return [Scored(r["id"], r["score"]) for r in found]

    async def turns(
        self, who: Principal, agent: str | None, text: str, scopes: Sequence[str], limit: int
    ) -> list[TurnHit]:
        """Turns by BM25, of one agent (None: any)."""
        async with self._db.tenant(who.tenant) as tenant:
            corpus = await _corpus(tenant, "turn_corpus")
            found = await tenant.rows(
                "search_turn_words",
                text,
                list(scopes),
                agent,
                corpus.documents,
                corpus.mean_length,
                limit,
            )
        return [TurnHit(**r) for r in found]

    async def meaning(
        self, who: Principal, vector: NDArray[np.float32], only: Filter, limit: int
    ) -> list[Scored]:
        """Memories by cosine of their nearest chunk: exact up to `EXACT_UP_TO` vectors."""
        asked = HalfVector(vector)
        args = (asked, list(only.scopes), list(only.status), limit, only.kinds)
        async with self._db.tenant(who.tenant) as tenant:
            count = await tenant.value("vector_count", EXACT_UP_TO + 1)
            if count <= EXACT_UP_TO:
                found = await tenant.rows("search_vectors_exact", *args)
            else:
                await tenant.value("iterate_index_scans")
                found = await tenant.rows("search_vectors_index", *args)
        return [Scored(r["id"], r["score"]) for r in found]

    async def around(
        self, who: Principal, ids: Sequence[UUID], scopes: Sequence[str], fan_out: int
    ) -> list[Link]:
        """Edges between the memories of `ids` and readable neighbours, `fan_out` a memory."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("edges_around", list(ids), list(scopes), fan_out)
        return [Link(r["near"], r["far"], r["kind"], r["weight"]) for r in found]

    async def load(
        self, who: Principal, ids: Sequence[UUID], scopes: Sequence[str]
    ) -> dict[UUID, Memory]:
        """The memories of `ids` that may be read."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("memories_by_ids", list(ids), list(scopes))
        return {row["id"]: rows.memory(row) for row in found}

    async def among(
        self, who: Principal, ids: Sequence[UUID]
    ) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """Open edges between memories of `ids`: (id, from, to, type, weight)."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("edges_among", list(ids))
        return [(r["id"], r["src"], r["dst"], r["kind"], r["weight"]) for r in found]


async def _corpus(tenant: Tenant, name: str) -> Corpus:
    row = await tenant.row(name)
    if row is None:
        return Corpus(0, 1)
    return Corpus(row["documents"], max(row["mean_length"], 1.0))

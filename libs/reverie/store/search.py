"""The arms of recall: words by BM25, meaning by vectors, neighbours by edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from reverie.domain.access import Principal
from reverie.domain.memory import Memory
from reverie.domain.named import shortest
from reverie.domain.worth import Facts
from reverie.store import rows
from reverie.store.counts import Counts
from reverie.store.database import FIRST_VECTORS, Database, Tenant
from reverie.store.near import Near
from reverie.store.weighted import sparse_vector
from reverie.store.worded import Told, Worded

NEAREST = 4
"""How many times the memories asked for the best are, before all are looked at."""


class Scored(NamedTuple):
    """A memory that an arm found, with that arm's own score.

    `whole`: no arm misses it for being new; the word arm alone can tell. `long`: it is of several
    chunks; the sparse arm alone can tell.
    """

    id: UUID
    score: float
    whole: bool = True
    long: bool = False


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


class Link(NamedTuple):
    """An open edge, seen from one memory of a list."""

    near: UUID
    far: UUID
    kind: str
    weight: float


@dataclass(frozen=True)
class Filter:
    """What a search may return: readable scope patterns, statuses, kinds (None: all).

    `tags`: all of them; `files`: touching one of them by its whole path; `since` to `until`: when
    it was true, or written; `valid_at`: a moment at which it was true.
    """

    scopes: Sequence[str]
    status: Sequence[str]
    kinds: Sequence[str] | None = None
    tiers: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    files: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_at: datetime | None = None

    @property
    def asked(self) -> dict[str, Any] | None:
        """What the SQL function `wanted` reads; None where nothing of it is asked."""
        lists = {"tiers": self.tiers, "tags": self.tags, "files": self.files}
        times = {"since": self.since, "until": self.until, "valid_at": self.valid_at}
        asked: dict[str, Any] = {name: list(one) for name, one in lists.items() if one is not None}
        return asked | {name: at.isoformat() for name, at in times.items() if at} or None


class Candidate(NamedTuple):
    """A memory that may be answered: what it is worth by itself, and its text."""

    facts: Facts
    content: str


class Holding(NamedTuple):
    """Memories that are wanted only where they may hold one of the names, folded as a name is."""

    ids: Sequence[UUID] = ()
    names: Sequence[str] = ()


NONE_HELD = Holding()


class Search:
    """Searches within one tenant."""

    def __init__(self, database: Database, vectors_mb: int = 0, words_mb: int = 0) -> None:
        """`vectors_mb`, `words_mb`: megabytes of vectors and postings that are kept in memory."""
        self._db = database
        self._counts = Counts()
        self.near = Near(database, vectors_mb)
        self.worded = Worded(database, words_mb)

    async def words(self, who: Principal, text: str, only: Filter, limit: int) -> list[Scored]:
        """Memories by BM25 of the prepared question `text`, best first."""
        async with self._db.reading(who.tenant) as tenant:
            corpus = await self._counts.memories(tenant)
            told = await self.worded.told(tenant, text, corpus)
            if told is not None:
                found = await _looked_up(tenant, told, only, limit)
            else:
                size = (corpus.documents, corpus.mean_length)
                args = (text, list(only.scopes), list(only.status), *size, limit)
                asked = (*args, only.kinds, only.asked)
                found = await _best(tenant, asked, limit, corpus.documents)
        return [Scored(*row) for row in found]

    async def turns(
        self,
        who: Principal,
        agent: str | None,
        text: str,
        scopes: Sequence[str],
        limit: int,
        by: datetime | None = None,
    ) -> list[TurnHit]:
        """Turns by BM25, of one agent (None: any), none after `by`."""
        async with self._db.reading(who.tenant) as tenant:
            corpus = await self._counts.turns(tenant)
            found = await tenant.rows(
                "search_turn_words",
                text,
                list(scopes),
                agent,
                corpus.documents,
                corpus.mean_length,
                limit,
                by,
            )
        return [TurnHit(**r) for r in found]

    async def meaning(
        self,
        who: Principal,
        vector: NDArray[np.float32],
        only: Filter,
        limit: int,
        vectors: str = FIRST_VECTORS,
    ) -> list[Scored]:
        """Memories by cosine of their nearest chunk: exact where few vectors are to be compared.

        `vectors`: the table of the model that made the vector.
        """
        asked = HalfVector(vector)
        args = (asked, list(only.scopes), list(only.status), limit, only.kinds, only.asked)
        async with self._db.reading(who.tenant) as tenant:
            tenant.vectors = vectors
            count = await self._counts.vectors(tenant)
            found: Sequence[tuple[Any, ...] | asyncpg.Record]
            if count.exact:
                found = await self.near.search(tenant, vector, args, count.own)
                found = found or await _nearest(tenant, args, limit, count.own)
            else:
                tenant.own_plans = True
                found = await tenant.rows("search_vectors_index", *args)
        return [Scored(*row) for row in found]

    async def sparse(
        self, who: Principal, words: Mapping[int, float], ids: Sequence[UUID], scopes: Sequence[str]
    ) -> list[Scored]:
        """Those of `ids` that have weighted words, by the inner product of their best chunk."""
        async with self._db.reading(who.tenant) as tenant:
            found = await tenant.rows(
                "search_sparse", sparse_vector(words), list(ids), list(scopes)
            )
        return [Scored(*row) for row in found]

    async def around(
        self, who: Principal, ids: Sequence[UUID], scopes: Sequence[str], fan_out: int
    ) -> list[Link]:
        """Edges from `ids` to readable neighbours, `fan_out` a memory, and along sessions."""
        async with self._db.reading(who.tenant) as tenant:
            found = await tenant.rows("edges_around", list(ids), list(scopes), fan_out)
        return [Link(*row) for row in found]

    async def candidates(
        self, who: Principal, ids: Sequence[UUID], only: Filter, holding: Holding = NONE_HELD
    ) -> dict[UUID, Candidate]:
        """Those of `ids` that the filter lets through, and of `holding` what may hold a name."""
        named = (
            (list(holding.ids), list(shortest(tuple(holding.names))))
            if holding.ids
            else (None, None)
        )
        args = (list(ids), list(only.scopes), list(only.status), only.kinds, only.asked, *named)
        async with self._db.reading(who.tenant) as tenant:
            found = await tenant.rows("recall_facts", *args)
        return {row["id"]: Candidate(rows.facts(row), row["content"]) for row in found}

    async def load(
        self, who: Principal, ids: Sequence[UUID], scopes: Sequence[str]
    ) -> dict[UUID, Memory]:
        """The memories of `ids` that may be read."""
        async with self._db.reading(who.tenant) as tenant:
            found = await tenant.rows("memories_by_ids", list(ids), list(scopes))
        return {row["id"]: rows.memory(row) for row in found}

    async def among(
        self, who: Principal, ids: Sequence[UUID]
    ) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """Open edges between memories of `ids`: (id, from, to, type, weight)."""
        async with self._db.reading(who.tenant) as tenant:
            found = await tenant.rows("edges_among", list(ids))
        return [(r["id"], r["src"], r["dst"], r["kind"], r["weight"]) for r in found]


async def _looked_up(tenant: Tenant, told: Told, only: Filter, limit: int) -> list[asyncpg.Record]:
    """The best that may be returned, looked for among few first, then among all."""
    asked = (limit, only.kinds, only.asked)
    for many in (NEAREST * limit, None):
        docs, scores, whole = told.first(many)
        args = (docs, list(only.scopes), list(only.status), scores, *asked)
        found = await tenant.rows("words_found", *args)
        if whole or len(found) == limit:
            break
    return found


async def _best(
    tenant: Tenant, args: tuple[object, ...], limit: int, documents: float
) -> list[asyncpg.Record]:
    """The best by words, looked for among few first; among all where that is too few."""
    few = NEAREST * limit
    found = await tenant.rows("search_words", *args, few)
    if len(found) < limit and few < documents:
        return await tenant.rows("search_words", *args, _at_least(2 * int(documents)))
    return found


async def _nearest(
    tenant: Tenant, args: tuple[object, ...], limit: int, count: int
) -> list[asyncpg.Record]:
    """The nearest memories, looked for among few chunks first; among all where that is too few."""
    few = NEAREST * limit
    found = await tenant.rows("search_vectors_exact", *args, few)
    if len(found) < limit and few < 2 * count:
        return await tenant.rows("search_vectors_exact", *args, _at_least(2 * count))
    return found


def _at_least(count: int) -> int:
    """A power of two from there on: limits are part of a statement, which should be few."""
    return 1 << count.bit_length()

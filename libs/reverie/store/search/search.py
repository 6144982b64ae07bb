"""Searches memories and turns: BM25, vectors, sparse vectors, and neighbouring edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.candidates import (
    NO_NAMED_CANDIDATES,
    NamedCandidates,
    NeighbourEdge,
    RecallCandidate,
    SearchHit,
    TurnHit,
)
from reverie.domain.retrieval.exact_name_match import select_minimal_names
from reverie.store.db import row_mapping
from reverie.store.db.database import DEFAULT_VECTOR_TABLE, Database, TenantConnection
from reverie.store.search.corpus_counts import CorpusCounts
from reverie.store.search.embedding_models import encode_sparse_vector
from reverie.store.search.posting_cache import DocumentScores, PostingCache
from reverie.store.search.vector_cache import VectorCache

LOOKUP_FACTOR = 4
"""Number of candidates per requested memory before all are searched."""


@dataclass(frozen=True)
class SearchFilter:
    """The filter of a search: readable scope patterns, statuses, kinds (None: all).

    `tags`: all of them; `files`: touches one of them by its whole path; `since` to `until`: when it
    was true, or written; `valid_at`: a moment at which it was true.
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
    def extra_conditions(self) -> dict[str, Any] | None:
        """Conditions for the SQL function `matches_filter`; None if there are none."""
        lists = {"tiers": self.tiers, "tags": self.tags, "files": self.files}
        times = {"since": self.since, "until": self.until, "valid_at": self.valid_at}
        conditions: dict[str, Any] = {
            name: list(values) for name, values in lists.items() if values is not None
        }
        return (
            conditions | {name: moment.isoformat() for name, moment in times.items() if moment}
            or None
        )


class SearchStore:
    """Searches within one tenant."""

    def __init__(self, database: Database, vectors_mb: int = 0, words_mb: int = 0) -> None:
        """`vectors_mb`, `words_mb`: megabytes of vectors and postings that are kept in memory."""
        self._db = database
        self._counts = CorpusCounts()
        self.vector_cache = VectorCache(database, vectors_mb)
        self.posting_cache = PostingCache(database, words_mb)

    async def search_words(
        self, principal: Principal, text: str, filters: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Memories by BM25 of the prepared question `text`, best first."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            corpus = await self._counts.count_memories(connection)
            document_scores = await self.posting_cache.score(connection, text, corpus)
            if document_scores is not None:
                found = await _look_up_documents(connection, document_scores, filters, limit)
            else:
                size = (corpus.documents, corpus.mean_length)
                args = (text, list(filters.scopes), list(filters.status), *size, limit)
                query_args = (*args, filters.kinds, filters.extra_conditions)
                found = await _search_words(connection, query_args, limit, corpus.documents)
        return [SearchHit(*row) for row in found]

    async def search_turns(
        self,
        principal: Principal,
        agent: str | None,
        text: str,
        scopes: Sequence[str],
        limit: int,
        until: datetime | None = None,
    ) -> list[TurnHit]:
        """Searches turns by BM25, of one agent (None: any), up to `until`."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            corpus = await self._counts.count_turns(connection)
            found = await connection.fetch_rows(
                "search_turn_words",
                text,
                list(scopes),
                agent,
                corpus.documents,
                corpus.mean_length,
                limit,
                until,
            )
        return [TurnHit(**row) for row in found]

    async def search_vectors(
        self,
        principal: Principal,
        vector: NDArray[np.float32],
        filters: SearchFilter,
        limit: int,
        vector_table: str = DEFAULT_VECTOR_TABLE,
    ) -> list[SearchHit]:
        """Searches memories by cosine of their nearest chunk; exact if few vectors are compared.

        `vector_table`: the table of the model that made the vector.
        """
        query_vector = HalfVector(vector)
        args = (
            query_vector,
            list(filters.scopes),
            list(filters.status),
            limit,
            filters.kinds,
            filters.extra_conditions,
        )
        async with self._db.tenant_reader(principal.tenant) as connection:
            connection.vector_table = vector_table
            count = await self._counts.count_vectors(connection)
            found: Sequence[tuple[Any, ...] | asyncpg.Record]
            if count.prefers_exact_search:
                found = await self.vector_cache.search(connection, vector, args, count.tenant_count)
                found = found or await _search_nearest(connection, args, limit, count.tenant_count)
            else:
                connection.plans_per_tenant = True
                found = await connection.fetch_rows("search_vectors_index", *args)
        return [SearchHit(*row) for row in found]

    async def search_sparse(
        self,
        principal: Principal,
        words: Mapping[int, float],
        ids: Sequence[UUID],
        scopes: Sequence[str],
    ) -> list[SearchHit]:
        """Those of `ids` that have weighted words, by the inner product of their best chunk."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "search_sparse", encode_sparse_vector(words), list(ids), list(scopes)
            )
        return [SearchHit(*row) for row in found]

    async def load_edges_around(
        self, principal: Principal, ids: Sequence[UUID], scopes: Sequence[str], fan_out: int
    ) -> list[NeighbourEdge]:
        """Edges from `ids` to readable neighbours, `fan_out` a memory, and along sessions."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("edges_around", list(ids), list(scopes), fan_out)
        return [NeighbourEdge(*row) for row in found]

    async def load_candidates(
        self,
        principal: Principal,
        ids: Sequence[UUID],
        filters: SearchFilter,
        by_name: NamedCandidates = NO_NAMED_CANDIDATES,
    ) -> dict[UUID, RecallCandidate]:
        """Loads candidates of `ids` that pass the filter, and of `by_name` those that may contain a
        name."""
        name_args = (
            (list(by_name.ids), list(select_minimal_names(tuple(by_name.names))))
            if by_name.ids
            else (None, None)
        )
        args = (
            list(ids),
            list(filters.scopes),
            list(filters.status),
            filters.kinds,
            filters.extra_conditions,
            *name_args,
        )
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("recall_candidates", *args)
        return {
            row["id"]: RecallCandidate(row_mapping.parse_facts(row), row["content"])
            for row in found
        }

    async def load_memories(
        self, principal: Principal, ids: Sequence[UUID], scopes: Sequence[str]
    ) -> dict[UUID, Memory]:
        """The memories of `ids` that may be read."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("memories_by_ids", list(ids), list(scopes))
        return {row["id"]: row_mapping.parse_memory(row) for row in found}

    async def load_edges_among(
        self, principal: Principal, ids: Sequence[UUID]
    ) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """Open edges between memories of `ids`: (id, from, to, type, weight)."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("edges_among", list(ids))
        return [(row["id"], row["src"], row["dst"], row["kind"], row["weight"]) for row in found]


async def _look_up_documents(
    connection: TenantConnection, document_scores: DocumentScores, filters: SearchFilter, limit: int
) -> list[asyncpg.Record]:
    """The best that may be returned, looked for among few first, then among all."""
    filter_args = (limit, filters.kinds, filters.extra_conditions)
    for count in (LOOKUP_FACTOR * limit, None):
        docs, scores, whole = document_scores.top(count)
        args = (docs, list(filters.scopes), list(filters.status), scores, *filter_args)
        found = await connection.fetch_rows("documents_lookup", *args)
        if whole or len(found) == limit:
            break
    return found


async def _search_words(
    connection: TenantConnection, args: tuple[object, ...], limit: int, documents: float
) -> list[asyncpg.Record]:
    """Returns the best by words: searches few candidates first, all if these are too few."""
    first_limit = LOOKUP_FACTOR * limit
    found = await connection.fetch_rows("search_words", *args, first_limit)
    if len(found) < limit and first_limit < documents:
        return await connection.fetch_rows(
            "search_words", *args, _next_power_of_two(2 * int(documents))
        )
    return found


async def _search_nearest(
    connection: TenantConnection, args: tuple[object, ...], limit: int, count: int
) -> list[asyncpg.Record]:
    """Returns the nearest memories: searches few chunks first, all if these are too few."""
    first_limit = LOOKUP_FACTOR * limit
    found = await connection.fetch_rows("search_vectors_exact", *args, first_limit)
    if len(found) < limit and first_limit < 2 * count:
        return await connection.fetch_rows(
            "search_vectors_exact", *args, _next_power_of_two(2 * count)
        )
    return found


def _next_power_of_two(count: int) -> int:
    """A power of two from there on: limits are part of a statement, which should be few."""
    return 1 << count.bit_length()

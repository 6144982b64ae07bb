"""Searches memories and turns: BM25, vectors, sparse vectors, and neighbouring edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from reverie.domain.access.principals import Principal
from reverie.domain.context.open_files import list_file_names
from reverie.domain.core.kinds import EdgeKind
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import AnswerEdge
from reverie.domain.retrieval.candidates import EDGE_KINDS, ArmHits, NeighbourEdges, TurnHit
from reverie.domain.retrieval.ranking_facts import (
    KINDS,
    PACKED_FACTS,
    FactTable,
    IntArray,
    decode_facts,
    number_scopes,
)
from reverie.store.db import row_mapping
from reverie.store.db.database import DEFAULT_VECTOR_TABLE, Database, TenantConnection
from reverie.store.search.corpus_counts import CorpusCounts
from reverie.store.search.embedding_models import encode_sparse_vector

LOOKUP_FACTOR = 4
"""How many candidates are searched first for each memory asked for; if too few pass, all are."""


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
    """Searches within one tenant, in Postgres."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._counts = CorpusCounts()

    async def search_words(
        self, principal: Principal, text: str, filters: SearchFilter, limit: int
    ) -> ArmHits:
        """Memories by BM25 of the prepared question `text`, best first."""
        scopes = list(filters.scopes)
        async with self._db.tenant_reader(principal.tenant) as connection:
            corpus = await self._counts.count_memories(connection, scopes)
            size = (corpus.documents, corpus.mean_length)
            args = (text, scopes, list(filters.status), *size, limit)
            query_args = (*args, filters.kinds, filters.extra_conditions)
            found = await _search_words(connection, query_args, limit, corpus.documents)
        return build_hits(found)

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
            corpus = await self._counts.count_turns(connection, scopes, agent)
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
    ) -> ArmHits:
        """Searches memories by cosine of their nearest chunk; exact if few vectors are compared.

        `vector_table`: the table of the model that made the vector.
        """
        args = (
            HalfVector(vector),
            list(filters.scopes),
            list(filters.status),
            limit,
            filters.kinds,
            filters.extra_conditions,
        )
        async with self._db.tenant_reader(principal.tenant) as connection:
            connection.vector_table = vector_table
            count = await self._counts.count_vectors(connection)
            if count.prefers_exact_search:
                found = await _search_nearest(connection, args, limit, count.tenant_count)
                return build_hits(found)
        async with self._db.snapshot(principal.tenant, own_plans=True) as connection:
            connection.vector_table = vector_table
            return build_hits(await connection.fetch_rows("search_vectors_index", *args))

    async def search_sparse(
        self,
        principal: Principal,
        words: Mapping[int, float],
        docs: IntArray,
        scopes: Sequence[str],
    ) -> ArmHits:
        """Those of `docs` that have weighted words, by the inner product of their best chunk."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "search_sparse", encode_sparse_vector(words), docs.tolist(), list(scopes)
            )
        long = np.array([row["long"] for row in found], np.bool_)
        return replace(build_hits(found), long=long)

    async def load_edges_around(
        self, principal: Principal, docs: IntArray, scopes: Sequence[str], fan_out: int
    ) -> NeighbourEdges:
        """Edges from `docs` to readable neighbours, `fan_out` a memory, and along sessions."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "edges_around", docs.tolist(), list(scopes), fan_out
            )
        return build_neighbour_edges(found)

    async def load_edges_of_named(
        self,
        principal: Principal,
        paths: Sequence[str],
        labels: Sequence[str],
        scopes: Sequence[str],
        fan_out: int,
    ) -> NeighbourEdges:
        """Edges from the files and entities of these names to readable memories that touch them."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "edges_of_named_nodes",
                list(scopes),
                list(paths),
                list_file_names(paths),
                [f"entity:{label}" for label in labels],
                fan_out,
            )
        return build_neighbour_edges(found)

    async def load_facts(
        self, principal: Principal, docs: IntArray, filters: SearchFilter
    ) -> FactTable:
        """The facts of those of `docs` that may be read, and which pass the filter."""
        args = (
            [kind.value for kind in KINDS],
            docs.tolist(),
            list(filters.scopes),
            list(filters.status),
            filters.kinds,
            filters.extra_conditions,
        )
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("candidate_facts", *args)
        packed = b"".join(row["packed"] for row in found)
        records = decode_facts(np.frombuffer(packed, PACKED_FACTS))
        passes = np.array([row["passes"] for row in found], np.bool_)
        return FactTable(records, passes, *number_scopes(row["scope"] for row in found))

    async def load_memories(
        self, principal: Principal, ids: Sequence[UUID], scopes: Sequence[str]
    ) -> dict[UUID, Memory]:
        """The memories of `ids` that may be read, without when and how often they were used."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("answer_memories", list(ids), list(scopes))
        return {row["id"]: row_mapping.parse_memory(row) for row in found}

    async def load_edges_among(self, principal: Principal, ids: Sequence[UUID]) -> list[AnswerEdge]:
        """Open edges between memories of `ids`."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            found = await connection.fetch_rows("edges_among", list(ids))
        return [(row["id"], row["src"], row["dst"], row["kind"], row["weight"]) for row in found]


def build_hits(rows: Sequence[asyncpg.Record]) -> ArmHits:
    """Hits from rows with the number (`doc`) and the score of a memory."""
    docs, scores = [row["doc"] for row in rows], [row["score"] for row in rows]
    return ArmHits(np.array(docs, np.int64), np.array(scores, np.float64))


def build_neighbour_edges(rows: Sequence[asyncpg.Record]) -> NeighbourEdges:
    """Edges from rows of `edges_around`."""
    return NeighbourEdges(
        np.array([row["near"] for row in rows], np.int64),
        np.array([row["far"] for row in rows], np.int64),
        np.array([EDGE_KINDS.index(EdgeKind(row["kind"])) for row in rows], np.uint8),
        np.array([row["weight"] for row in rows], np.float64),
    )


async def _search_words(
    connection: TenantConnection, args: tuple[object, ...], limit: int, documents: float
) -> list[asyncpg.Record]:
    """The best by words. Few candidates are searched first, and all if too few of them pass."""
    first_limit = LOOKUP_FACTOR * limit
    found = await connection.fetch_rows("search_words", *args, first_limit)
    if len(found) < limit and first_limit < documents:
        # The count may be some seconds old.
        return await connection.fetch_rows("search_words", *args, LOOKUP_FACTOR * int(documents))
    return found


async def _search_nearest(
    connection: TenantConnection, args: tuple[object, ...], limit: int, count: int
) -> list[asyncpg.Record]:
    """The nearest memories. Few chunks are searched first, and all if too few of them pass."""
    first_limit = LOOKUP_FACTOR * limit
    found = await connection.fetch_rows("search_vectors_exact", *args, first_limit)
    if len(found) < limit and first_limit < 2 * count:
        return await connection.fetch_rows("search_vectors_exact", *args, LOOKUP_FACTOR * count)
    return found

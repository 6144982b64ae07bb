"""Retrievers read what a principal may see: from an index, from Postgres, or as of a past time."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval import index_search
from reverie.domain.retrieval.answer import AnswerEdge
from reverie.domain.retrieval.candidates import (
    NO_EDGES,
    NO_HITS,
    ArmHits,
    NeighbourEdges,
    TurnHit,
    sort_by_score,
)
from reverie.domain.retrieval.ranking_facts import FactTable, IntArray
from reverie.inference.sparse_encoder import WordWeights
from reverie.store.search.embedding_models import TenantModel
from reverie.store.search.recall_index_cache import OpenIndex
from reverie.store.search.search import SearchFilter
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.pipeline.stage_runner import Eventual, StageOutcome, run_stage
from reverie_services.recall.pipeline.state import RecallQuestion

Vectors = Sequence[NDArray[np.float32]]


def merge_by_best_score(hit_lists: Sequence[ArmHits], limit: int) -> ArmHits:
    """Each memory once, with the best of its scores, the best first."""
    docs, places = np.unique(np.concatenate([hits.docs for hits in hit_lists]), return_inverse=True)
    scores = np.full(len(docs), -np.inf)
    np.maximum.at(scores, places, np.concatenate([hits.scores for hits in hit_lists]))
    order = sort_by_score(docs, scores)[:limit]
    return ArmHits(docs[order], scores[order])


@dataclass(frozen=True)
class Retriever:
    """Reads what one recall may see, as it is now, from Postgres."""

    deps: RecallPipelineDependencies
    principal: Principal
    search_filter: SearchFilter
    agent: str | None
    model: TenantModel

    def search_words(self, query: str) -> Eventual[ArmHits]:
        """Memories by BM25 of the prepared question."""
        limit = self.deps.settings.candidates_per_arm
        return self.deps.search.search_words(self.principal, query, self.search_filter, limit)

    def search_vectors(self, vectors: Vectors) -> Eventual[ArmHits]:
        """Memories by the similarity of their vectors to the most similar of these."""
        return self._search_each(vectors, self.deps.settings.candidates_per_arm)

    async def _search_each(self, vectors: Vectors, limit: int) -> ArmHits:
        hit_lists = [
            await self.deps.search.search_vectors(
                self.principal, vector, self.search_filter, limit, self.model.vector_table
            )
            for vector in vectors
        ]
        return merge_by_best_score(hit_lists, limit)

    def search_sparse(self, word_weights: WordWeights, docs: IntArray) -> Eventual[ArmHits]:
        """Scores those of `docs` that have sparse vectors, by the words of the question."""
        scopes = self.search_filter.scopes
        return self.deps.search.search_sparse(self.principal, word_weights, docs, scopes)

    def search_turns(self, query: str, until: datetime | None = None) -> Awaitable[list[TurnHit]]:
        """Raw turns by BM25, up to a moment."""
        limit, scopes = self.deps.settings.candidates_per_arm, self.search_filter.scopes
        return self.deps.search.search_turns(
            self.principal, self.agent, query, scopes, limit, until
        )

    def load_edges_around(self, docs: IntArray) -> Eventual[NeighbourEdges]:
        """The edges of memories to readable neighbours."""
        scopes, fan_out = self.search_filter.scopes, self.deps.settings.hop_fan_out
        return self.deps.search.load_edges_around(self.principal, docs, scopes, fan_out)

    def load_edges_of_named(
        self, paths: Sequence[str], labels: Sequence[str]
    ) -> Eventual[NeighbourEdges]:
        """Edges from files and entities of these names to readable memories that touch them."""
        scopes, fan_out = self.search_filter.scopes, self.deps.settings.node_fan_out
        return self.deps.search.load_edges_of_named(self.principal, paths, labels, scopes, fan_out)

    def load_facts(self, docs: IntArray) -> Eventual[FactTable]:
        """The facts of those memories that may be read, and which may be answered."""
        return self.deps.search.load_facts(self.principal, docs, self.search_filter)

    def load_memories(self, ids: Sequence[UUID]) -> Awaitable[dict[UUID, Memory]]:
        """The memories, without when and how often they were used."""
        return self.deps.search.load_memories(self.principal, ids, self.search_filter.scopes)

    def load_edges_among(
        self, ids: Sequence[UUID], docs: Sequence[int]
    ) -> Eventual[list[AnswerEdge]]:
        """The edges between memories of a list, given by id and by number."""
        return self.deps.search.load_edges_among(self.principal, ids)


@dataclass(frozen=True)
class IndexRetriever(Retriever):
    """Reads from the recall index of a tenant; the texts of an answer are read from Postgres."""

    opened: OpenIndex
    rows: index_search.IndexFilter

    def search_words(self, query: str) -> ArmHits:
        """Memories by BM25; the terms of the question came with the index."""
        limit = self.deps.settings.candidates_per_arm
        return index_search.search_words(self.opened.index, self.opened.terms, self.rows, limit)

    def search_vectors(self, vectors: Vectors) -> ArmHits:
        """Memories by the similarity of their vectors to the most similar of these."""
        limit = self.deps.settings.candidates_per_arm
        return index_search.search_vectors(self.opened.index, vectors, self.rows, limit)

    def search_sparse(self, word_weights: WordWeights, docs: IntArray) -> ArmHits:
        """Scores those of `docs` that have sparse vectors, by the words of the question."""
        return index_search.search_sparse(self.opened.index, word_weights, docs)

    def load_edges_around(self, docs: IntArray) -> NeighbourEdges:
        """The edges of memories to readable neighbours."""
        fan_out = self.deps.settings.hop_fan_out
        return index_search.find_edges_around(self.opened.index, docs, self.rows, fan_out)

    def load_facts(self, docs: IntArray) -> FactTable:
        """The facts of those memories that may be read, and which may be answered."""
        rows = self.opened.index.find_rows(docs)
        rows = rows[rows >= 0]
        return self.opened.index.get_facts(rows[self.rows.readable[rows]], self.rows.wanted)

    def load_edges_among(
        self, ids: Sequence[UUID], docs: Sequence[int]
    ) -> Eventual[list[AnswerEdge]]:
        """The edges between memories of a list, which Postgres is asked for if there are any.

        The index knows that, except for edges to files: only a question that names kinds finds
        files.
        """
        has_edges = index_search.has_edges_among(self.opened.index, np.array(docs, np.int64))
        if has_edges or self.search_filter.kinds is not None:
            return super().load_edges_among(ids, docs)
        return []


@dataclass(frozen=True)
class AsOfRetriever(Retriever):
    """Reads what was known at a moment, by words alone: there are no vectors of the past."""

    moment: datetime

    def search_words(self, query: str) -> Awaitable[ArmHits]:
        """Memories by BM25 over their texts of then."""
        limit = self.deps.settings.candidates_per_arm
        return self.deps.history.search_words(
            self.principal, query, self.moment, self.search_filter, limit
        )

    def search_vectors(self, vectors: Vectors) -> ArmHits:
        """Nothing: no vectors of the past are stored."""
        return NO_HITS

    def search_turns(self, query: str, until: datetime | None = None) -> Awaitable[list[TurnHit]]:
        """Raw turns until then, by BM25."""
        return super().search_turns(query, until or self.moment)

    def load_edges_of_named(self, paths: Sequence[str], labels: Sequence[str]) -> NeighbourEdges:
        """Nothing: the files that memories touched at that time are not searched."""
        return NO_EDGES

    def load_edges_around(self, docs: IntArray) -> Awaitable[NeighbourEdges]:
        """The edges that the memories had then."""
        scopes, fan_out = self.search_filter.scopes, self.deps.settings.hop_fan_out
        return self.deps.history.load_edges_around(
            self.principal, docs, scopes, fan_out, self.moment
        )

    def load_facts(self, docs: IntArray) -> Awaitable[FactTable]:
        """The facts of then."""
        return self.deps.history.load_facts(self.principal, docs, self.search_filter, self.moment)

    def load_memories(self, ids: Sequence[UUID]) -> Awaitable[dict[UUID, Memory]]:
        """The whole memories as they were known then."""
        scopes = self.search_filter.scopes
        return self.deps.history.load_memories(self.principal, ids, scopes, self.moment)

    def load_edges_among(
        self, ids: Sequence[UUID], docs: Sequence[int]
    ) -> Awaitable[list[AnswerEdge]]:
        """The edges that were open then."""
        return self.deps.history.load_edges_among(self.principal, ids, self.moment)


async def open_retriever(
    deps: RecallPipelineDependencies,
    principal: Principal,
    question: RecallQuestion,
    query: str,
    model: TenantModel,
    seconds: float,
) -> StageOutcome[Retriever]:
    """Opens the recall index if there is one that can answer in time, or else reads from Postgres.

    The index has no tags and files, and nothing of the past. `query`: the prepared question.
    """
    search_filter = question.search_filter
    args = (deps, principal, search_filter, question.agent, model)
    if question.as_of:
        return StageOutcome("index", AsOfRetriever(*args, question.as_of))
    plain = Retriever(*args)
    if search_filter.extra_conditions is not None:
        return StageOutcome("index", plain)

    async def open_index() -> Retriever:
        opened = await deps.recall_indexes.open(principal.tenant, model, query)
        if opened is None:
            return plain
        filters = search_filter.scopes, search_filter.status, search_filter.kinds
        return IndexRetriever(*args, opened, index_search.build_filter(opened.index, *filters))

    return await run_stage("index", seconds, open_index, plain)


async def load_model(
    deps: RecallPipelineDependencies, tenant: int, seconds: float
) -> StageOutcome[TenantModel]:
    """The model of the tenant's vectors; the last one that was known if Postgres does not say."""
    models = deps.embedding_models
    if (fresh := models.get_fresh(tenant)) is not None:
        return StageOutcome("meaning", fresh)
    known = models.get_cached(tenant)
    return await run_stage("meaning", seconds, partial(models.get, tenant), known)

"""Retrievers: read the memories that a principal may see, as they are now or as of a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import AnswerEdge
from reverie.domain.retrieval.candidates import (
    NamedCandidates,
    NeighbourEdge,
    RecallCandidate,
    SearchHit,
    TurnHit,
)
from reverie.inference.sparse_encoder import MAX_QUERY_WORDS, WordWeights
from reverie.store.memories.history import HistoryStore
from reverie.store.search.search import SearchFilter
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.pipeline.state import RecallQuestion


def merge_by_best_score(hit_lists: Sequence[Sequence[SearchHit]]) -> list[SearchHit]:
    """Each memory once, with the best of its scores, the best first."""
    best: dict[UUID, SearchHit] = {}
    for hit in (scored for hits in hit_lists for scored in hits):
        if hit.id not in best or hit.score > best[hit.id].score:
            best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.id))


@dataclass(frozen=True)
class Retriever:
    """Reads what one recall may see, as it is now. A disabled arm returns None."""

    deps: RecallPipelineDependencies
    principal: Principal
    search_filter: SearchFilter
    agent: str | None

    async def search_words(self, query: str) -> list[SearchHit]:
        """Memories by BM25 of the prepared question."""
        limit = self.deps.settings.candidates_per_arm
        return await self.deps.search.search_words(self.principal, query, self.search_filter, limit)

    def search_vectors(self, texts: Sequence[str]) -> Awaitable[list[SearchHit]] | None:
        """Memories by the similarity of their vectors to the most similar of the texts."""
        return self._search_vectors(texts)

    async def _search_vectors(self, texts: Sequence[str]) -> list[SearchHit]:
        model = await self.deps.embedding_models.get(self.principal.tenant)
        embedder = await self.deps.model_manager.get_embedder(model.name, model.probe)
        limit, vectors = self.deps.settings.candidates_per_arm, await embedder.embed(texts)
        hit_lists = [
            await self.deps.search.search_vectors(
                self.principal, vector, self.search_filter, limit, model.vector_table
            )
            for vector in vectors
        ]
        return hit_lists[0] if len(hit_lists) == 1 else merge_by_best_score(hit_lists)[:limit]

    def encode_question(self, text: str) -> Awaitable[WordWeights | None] | None:
        """The question as weighted words of the sparse model."""
        uses_sparse = self.deps.settings.sparse_weight and self.deps.model_manager.uses_sparse
        return self._encode_question(text) if uses_sparse else None

    async def _encode_question(self, text: str) -> WordWeights | None:
        encoder = self.deps.model_manager.get_sparse_encoder()
        [word_weights] = await encoder.encode([text], MAX_QUERY_WORDS)
        return word_weights

    async def search_sparse(
        self, word_weights: WordWeights, ids: Sequence[UUID]
    ) -> list[SearchHit]:
        """Returns those ids that have sparse vectors, by the words they share with the question."""
        scopes = self.search_filter.scopes
        return await self.deps.search.search_sparse(self.principal, word_weights, ids, scopes)

    async def search_turns(self, query: str) -> list[TurnHit]:
        """Raw turns by BM25."""
        return await self._search_turns(query, None)

    async def _search_turns(self, query: str, until: datetime | None) -> list[TurnHit]:
        limit, scopes = self.deps.settings.candidates_per_arm, self.search_filter.scopes
        return await self.deps.search.search_turns(
            self.principal, self.agent, query, scopes, limit, until
        )

    async def load_edges_around(self, seeds: Sequence[UUID]) -> list[NeighbourEdge]:
        """The edges of the seeds."""
        scopes, fan_out = self.search_filter.scopes, self.deps.settings.hop_fan_out
        return await self.deps.search.load_edges_around(self.principal, seeds, scopes, fan_out)

    async def load_candidates(
        self, ids: Sequence[UUID], by_name: NamedCandidates
    ) -> dict[UUID, RecallCandidate]:
        """The facts and texts of those ids that may be answered, and of those that hold a name."""
        return await self.deps.search.load_candidates(
            self.principal, ids, self.search_filter, by_name
        )

    async def load_memories(self, ids: Sequence[UUID]) -> dict[UUID, Memory]:
        """The whole memories."""
        return await self.deps.search.load_memories(self.principal, ids, self.search_filter.scopes)

    async def load_edges_among(self, ids: Sequence[UUID]) -> list[AnswerEdge]:
        """The edges between memories of a list."""
        return await self.deps.search.load_edges_among(self.principal, ids)


@dataclass(frozen=True)
class AsOfRetriever(Retriever):
    """Reads what was known at a moment, by words alone: there are no vectors of the past."""

    moment: datetime

    @property
    def _history(self) -> HistoryStore:
        return self.deps.history

    async def search_words(self, query: str) -> list[SearchHit]:
        """Memories by BM25 over their texts of then."""
        limit = self.deps.settings.candidates_per_arm
        return await self._history.search_words(
            self.principal, query, self.moment, self.search_filter, limit
        )

    def search_vectors(self, texts: Sequence[str]) -> None:
        """Returns None: no vectors of the past are stored."""

    def encode_question(self, text: str) -> None:
        """Returns None: no vectors of the past are stored."""

    async def search_turns(self, query: str) -> list[TurnHit]:
        """Raw turns until then, by BM25."""
        return await self._search_turns(query, self.moment)

    async def load_edges_around(self, seeds: Sequence[UUID]) -> list[NeighbourEdge]:
        """The edges that the seeds had then."""
        scopes, fan_out = self.search_filter.scopes, self.deps.settings.hop_fan_out
        return await self._history.load_edges_around(
            self.principal, seeds, scopes, fan_out, self.moment
        )

    async def load_candidates(
        self, ids: Sequence[UUID], by_name: NamedCandidates
    ) -> dict[UUID, RecallCandidate]:
        """The facts and texts of then."""
        all_ids = [*ids, *by_name.ids]
        return await self._history.load_candidates(
            self.principal, all_ids, self.search_filter, self.moment
        )

    async def load_memories(self, ids: Sequence[UUID]) -> dict[UUID, Memory]:
        """The whole memories as they were known then."""
        return await self._history.load_memories(
            self.principal, ids, self.search_filter.scopes, self.moment
        )

    async def load_edges_among(self, ids: Sequence[UUID]) -> list[AnswerEdge]:
        """The edges that were open then."""
        return await self._history.load_edges_among(self.principal, ids, self.moment)


def open_retriever(
    deps: RecallPipelineDependencies, principal: Principal, question: RecallQuestion
) -> Retriever:
    """The retriever of the present, or of the moment that the question names."""
    args = (deps, principal, question.search_filter, question.agent)
    return AsOfRetriever(*args, question.as_of) if question.as_of else Retriever(*args)

"""Retrieves candidates by words, vectors and turns, each with a deadline and a weight."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import structlog

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.question_parsing import MAX_PARSED_CHARS
from reverie.inference.sparse_encoder import MAX_QUERY_WORDS, WordWeights
from reverie.runtime.observability.tracing import span
from reverie.runtime.process.asyncio_helpers import run_with_timeout
from reverie.store.search.search import (
    NamedCandidates,
    NeighbourEdge,
    RecallCandidate,
    SearchFilter,
    SearchHit,
    TurnHit,
)
from reverie_services.recall.dependencies import RecallDependencies

log = structlog.get_logger("reverie_services.recall")

T = TypeVar("T")


@dataclass
class StageRunner:
    """What the arms took, in milliseconds, and which of them could not."""

    degraded: list[str] = field(default_factory=list)
    stage_milliseconds: dict[str, float] = field(default_factory=dict)

    async def run(self, name: str, seconds: float, work: Awaitable[T] | None, fallback: T) -> T:
        """An arm's answer; `fallback` of one that fails, is late, or is off (None)."""
        if work is None:
            return fallback
        started = time.perf_counter()
        try:
            with span(f"recall {name}"):
                return await run_with_timeout(work, seconds)
        except (ReverieError, TimeoutError) as error:
            log.warning("arm_failed", arm=name, error=type(error).__name__)
        except Exception as error:
            log.exception("arm_failed", arm=name, error=type(error).__name__)
        finally:
            elapsed = (time.perf_counter() - started) * 1000
            self.stage_milliseconds[name] = round(
                self.stage_milliseconds.get(name, 0.0) + elapsed, 2
            )
        if name not in self.degraded:
            self.degraded.append(name)
        return fallback


def merge_by_best_score(hit_lists: Sequence[Sequence[SearchHit]]) -> list[SearchHit]:
    """Each memory once, with the best of its scores, the best first."""
    best: dict[UUID, SearchHit] = {}
    for hit in (scored for hits in hit_lists for scored in hits):
        if hit.id not in best or hit.score > best[hit.id].score:
            best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.id))


@dataclass(frozen=True)
class Retriever:
    """What one recall may see: whose, of what, now or as it was known at a moment."""

    deps: RecallDependencies
    principal: Principal
    search_filter: SearchFilter
    agent: str | None = None
    as_of: datetime | None = None

    async def search_words(self, query: str) -> list[SearchHit]:
        """Memories by BM25 of the prepared question."""
        limit = self.deps.settings.candidates_per_arm
        if self.as_of:
            return await self.deps.history.search_words(
                self.principal, query, self.as_of, self.search_filter, limit
            )
        return await self.deps.search.search_words(self.principal, query, self.search_filter, limit)

    async def search_vectors(self, texts: Sequence[str]) -> list[SearchHit]:
        """Memories by the nearness of their vectors to the nearest of the texts."""
        model = await self.deps.embedding_models.get(self.principal.tenant)
        embedder = await self.deps.model_manager.get_verified_embedder(model.name, model.probe)
        vectors = await embedder.embed(texts)
        limit, search_store = self.deps.settings.candidates_per_arm, self.deps.search
        hit_lists = [
            await search_store.search_vectors(
                self.principal, vector, self.search_filter, limit, model.vector_table
            )
            for vector in vectors
        ]
        return hit_lists[0] if len(hit_lists) == 1 else merge_by_best_score(hit_lists)[:limit]

    async def encode_question(self, text: str) -> WordWeights | None:
        """The question as the sparse model reads it."""
        [word_weights] = await self.deps.model_manager.get_sparse_encoder().encode(
            [text], MAX_QUERY_WORDS
        )
        return word_weights

    async def search_sparse(
        self, word_weights: WordWeights, ids: Sequence[UUID]
    ) -> list[SearchHit]:
        """Those of the ids that the sparse model has read, by the words they share."""
        return await self.deps.search.search_sparse(
            self.principal, word_weights, ids, self.search_filter.scopes
        )

    async def search_turns(self, query: str) -> list[TurnHit]:
        """Raw turns by BM25."""
        limit, scopes = self.deps.settings.candidates_per_arm, self.search_filter.scopes
        return await self.deps.search.search_turns(
            self.principal, self.agent, query, scopes, limit, self.as_of
        )

    async def load_edges_around(self, seeds: Sequence[UUID]) -> list[NeighbourEdge]:
        """The edges of the seeds."""
        fan_out = self.deps.settings.hop_fan_out
        if self.as_of:
            return await self.deps.history.load_edges_around(
                self.principal, seeds, self.search_filter.scopes, fan_out, self.as_of
            )
        return await self.deps.search.load_edges_around(
            self.principal, seeds, self.search_filter.scopes, fan_out
        )

    async def load_candidates(
        self, ids: Sequence[UUID], named_candidates: NamedCandidates
    ) -> dict[UUID, RecallCandidate]:
        """What is known of the ids, and of what may hold a name, as far as it may be answered."""
        if self.as_of is None:
            return await self.deps.search.load_candidates(
                self.principal, ids, self.search_filter, named_candidates
            )
        all_ids = [*ids, *named_candidates.ids]
        return await self.deps.history.load_candidates(
            self.principal, all_ids, self.search_filter, self.as_of
        )

    async def load_memories(self, ids: Sequence[UUID]) -> dict[UUID, Memory]:
        """The memories, whole."""
        if self.as_of is None:
            return await self.deps.search.load_memories(
                self.principal, ids, self.search_filter.scopes
            )
        return await self.deps.history.load_memories(
            self.principal, ids, self.search_filter.scopes, self.as_of
        )

    async def load_edges_among(
        self, ids: Sequence[UUID]
    ) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """The edges between memories of a list."""
        if self.as_of is None:
            return await self.deps.search.load_edges_among(self.principal, ids)
        return await self.deps.history.load_edges_among(self.principal, ids, self.as_of)


MIN_VOCABULARY_SHARE = 0.05
"""What meaning counts at least: a guess is better than nothing where words find nothing."""


@dataclass(frozen=True)
class ArmWeights:
    """`arms`: of those that bring memories; `sparse`: of the one that judges them."""

    arms: Mapping[str, float]
    sparse: float


ZERO_WEIGHTS = ArmWeights({}, 0.0)
"""Of a recall that has not asked its arms yet."""


def compute_arm_weights(deps: RecallDependencies, tenant: int, text: str) -> ArmWeights:
    """The weights that are set, times the share of the question's tokens each model knows.

    Of the tenant's embedding model, as far as it was asked for by then.
    """
    settings, text_prefix = deps.settings, text[:MAX_PARSED_CHARS]
    counter = deps.model_manager.get_counter(deps.embedding_models.get_cached(tenant).name)
    vocabulary_share = max(MIN_VOCABULARY_SHARE, counter.vocabulary_share(text_prefix))
    return ArmWeights(
        {**settings.arm_weights, "meaning": settings.arm_weights["meaning"] * vocabulary_share},
        settings.sparse_weight * deps.model_manager.sparse_counter.vocabulary_share(text_prefix),
    )

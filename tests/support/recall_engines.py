"""Recall through the index in memory beside recall through Postgres, over made-up memories."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from reverie.domain.access.principals import Principal
from reverie.domain.core.confidence import DEFAULT_DECAY
from reverie.runtime.limits.concurrency import ConcurrencyLimiter, ConcurrencyLimits
from reverie.store.db.database import Database, open_database
from reverie.store.db.replica import ReplicaOptions
from reverie.store.memories.history import HistoryStore
from reverie.store.memories.memories import MemoryStore
from reverie.store.search.embedding_models import (
    SPARSE_DIMENSIONS,
    EmbeddingModelStore,
    TenantModel,
)
from reverie.store.search.recall_index_cache import RecallIndexCache
from reverie.store.search.search import SearchFilter, SearchStore
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.metrics import RecallMetrics
from reverie_services.recall.pipeline.recall import recall
from reverie_services.recall.pipeline.state import RecallQuestion, RecallResult
from reverie_services.recall.settings import RecallSettings
from tests.support.store_setup import Store, add_tenants, principal

DIMS = TenantModel().dims
Vector = NDArray[np.float32]


def embed(text: str) -> Vector:
    """The sum of a vector of each word, so that texts with common words are near."""
    words = text.casefold().split() or [""]
    numbers = (np.random.default_rng(zlib.crc32(word.encode())) for word in words)
    total = sum((number.normal(size=DIMS) for number in numbers), np.zeros(DIMS))
    return np.asarray(total / np.linalg.norm(total), np.float32)


def weigh_words(text: str) -> dict[int, float]:
    """Each word of a text with a weight, and another word that it stands for."""
    hashes = {zlib.crc32(word.encode()) for word in text.casefold().split()}
    own = {number % SPARSE_DIMENSIONS: 0.5 + number % 97 / 50 for number in hashes}
    return {(number // 7) % SPARSE_DIMENSIONS: 0.25 for number in hashes} | own


class MadeUpModels:
    """The models of a gateway, made up of words."""

    uses_sparse = embeds = True

    async def get_embedder(self, name: str, probe: Sequence[float]) -> MadeUpModels:
        """Itself, for any model."""
        return self

    async def embed(self, texts: Sequence[str]) -> Vector:
        """A row a text."""
        return np.stack([embed(text) for text in texts])

    def get_sparse_encoder(self) -> MadeUpModels:
        """Itself."""
        return self

    async def encode(self, texts: Sequence[str], limit: int) -> list[dict[int, float]]:
        """The weighted words of each text."""
        return [weigh_words(text) for text in texts]

    def get_counter(self, name: str) -> MadeUpModels:
        """Itself."""
        return self

    @property
    def counter(self) -> MadeUpModels:
        """Itself."""
        return self

    sparse_counter = counter

    def count(self, text: str) -> int:
        """The words of a text."""
        return len(text.split())

    def vocabulary_share(self, text: str) -> float:
        """All words are known."""
        return 1.0


class NoTraces:
    """Keeps no traces."""

    def add(self, tenant: int, build: object) -> None:
        """Drops it."""


def _build_dependencies(
    database: Database, indexes: RecallIndexCache
) -> RecallPipelineDependencies:
    limiter = ConcurrencyLimiter(ConcurrencyLimits(8, 64, 5.0))
    return RecallPipelineDependencies(
        settings=RecallSettings(
            content_limit=10_000,
            decay=DEFAULT_DECAY,
            rerank_timeout=1.0,
            query_expansion_timeout=0.0,
            timeout=60.0,
        ),
        model_manager=cast("Any", MadeUpModels()),
        embedding_models=EmbeddingModelStore(database),
        search=SearchStore(database),
        recall_indexes=indexes,
        history=HistoryStore(database),
        limiter=limiter,
        metrics=RecallMetrics(CollectorRegistry(), limiter),
        trace_writer=cast("Any", NoTraces()),
    )


@dataclass(frozen=True)
class RecallEngines:
    """A gateway that holds recall indexes, and one that asks Postgres, of the same database."""

    store: Store
    indexes: RecallIndexCache
    indexed: RecallPipelineDependencies
    plain: RecallPipelineDependencies

    async def load_index(self, who: Principal | None = None) -> None:
        """Loads the index of a tenant."""
        await self.holds_index(who)
        await self.load_requested()
        assert await self.holds_index(who)

    async def load_requested(self) -> None:
        """Loads all indexes that are asked for now, as the background task does."""
        while self.indexes._pending:
            await self.indexes._load_next()

    async def holds_index(self, who: Principal | None = None) -> bool:
        """Whether there is an index that can answer now; if not, one is asked for."""
        tenant = (who or self.store.me).tenant
        return await self.indexes.open(tenant, TenantModel(), "") is not None

    async def ask_both(
        self, question: RecallQuestion, who: Principal | None = None
    ) -> tuple[RecallResult, RecallResult]:
        """What the index and what Postgres answers."""
        results = [
            await recall(deps, who or self.store.me, question)
            for deps in (self.indexed, self.plain)
        ]
        assert [result.degraded for result in results] == [[], []]
        return results[0], results[1]


def ask(
    text: str,
    scopes: Sequence[str] = ("*",),
    kinds: Sequence[str] | None = None,
    limit: int = 10,
    depth: int = 1,
    **fields: Any,
) -> RecallQuestion:
    """A question for memories that are active or superseded."""
    status = fields.pop("status", ("active", "superseded"))
    search_filter = SearchFilter(list(scopes), list(status), kinds)
    return RecallQuestion(text, search_filter, limit, None, depth, include_turns=False, **fields)


@asynccontextmanager
async def open_engines(
    database: DatabaseUrls, megabytes: int = 64, replica: ReplicaOptions | None = None
) -> AsyncIterator[RecallEngines]:
    """Both gateways over a fresh database with the tenants `one` and `two`."""
    one, two = add_tenants(database.admin_url, "one", "two")
    async with open_database(database.service_url, size=10, reader_size=4, replica=replica) as db:
        store = Store(
            db,
            MemoryStore(db),
            principal(one, "one"),
            principal(two, "two"),
            database.admin_url,
            database.service_url,
        )
        indexes = RecallIndexCache(db, megabytes)
        yield RecallEngines(
            store,
            indexes,
            _build_dependencies(db, indexes),
            _build_dependencies(db, RecallIndexCache(db, 0)),
        )

"""Manages the embedding model of each tenant and fills the vectors of a new one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import LiteralString

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from reverie.domain.access.principals import Principal
from reverie.domain.text.index_terms import searched_text
from reverie.store.db.database import DEFAULT_VECTOR_TABLE, Database, TenantConnection
from reverie.store.db.roles import SCHEMA
from reverie.store.search.corpus_counts import CorpusCounts

SPARSE_DIMENSIONS = 30_522
"""The size of the vocabulary of the learned-sparse model."""
DEFAULT_MODEL = "bge-small-en-v1.5"
"""The model of a tenant that was never moved to another."""
CACHE_SECONDS = 5.0
PRELOAD_LIMIT = 3
"""Number of models that are loaded in advance: one may need 400 MB."""
CACHE_SIZE = 1_000
"""Number of tenants whose model is cached, the last used ones: 12 KB each, for the probe."""

Vector = NDArray[np.float32]


def encode_sparse_vector(words: Mapping[int, float]) -> SparseVector:
    """The words, by their number, as a `sparsevec`."""
    return SparseVector(dict(words), SPARSE_DIMENSIONS)


def decode_sparse_vector(vector: SparseVector) -> dict[int, float]:
    """A `sparsevec` as words by their number."""
    return dict(zip(vector.indices(), vector.values(), strict=True))


@dataclass(frozen=True)
class TenantModel:
    """A model and the length of its vectors; `probe`: its vector of the probe text."""

    name: str = DEFAULT_MODEL
    dims: int = 384
    probe: tuple[float, ...] = ()

    @property
    def vector_table(self) -> str:
        """The table of its vectors."""
        return build_table_name(self.name)


@dataclass(frozen=True)
class EnrichmentBacklog:
    """Memories that wait for enrichment, and since when the oldest of them does."""

    waiting: int
    since: datetime | None


@dataclass(frozen=True)
class MissingChunk:
    """A chunk without a vector: its number and its text."""

    number: int
    text: str


def build_table_name(name: str) -> str:
    """The name of a model's vector table: two models never share one."""
    short = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40]
    if name == DEFAULT_MODEL:
        return DEFAULT_VECTOR_TABLE
    return f"vec_{short}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class ModelMigration:
    """Moves tenants to other models, as the schema's owner."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def create_vector_table(self, name: str, dims: int) -> None:
        """Creates a model's vector table if it is missing."""
        if name != DEFAULT_MODEL:
            await self._execute("call create_vector_table(%s, %s)", build_table_name(name), dims)

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> TenantModel:
        """Records a model that is to be filled; an existing record stays unchanged."""
        await self._execute(
            "update tenant set models = jsonb_build_object(%s::text, %s::jsonb) || models"
            " where id = %s",
            *(name, json.dumps(_encode_model(name, dims, probe)), tenant),
            tenant=tenant,
        )
        return TenantModel(name, dims)

    async def switch(self, tenant: int, name: str) -> None:
        """Makes `name` the tenant's model of vector search.

        Waits for writes that use the present one.
        """
        await self._execute(
            "with waited as materialized ("
            " select pg_advisory_xact_lock(hashtext('reverie.model'), %s))"
            " update tenant set model = %s from waited where id = %s",
            *(tenant, name, tenant),
            tenant=tenant,
        )

    async def _execute(self, statement: LiteralString, *args: object, tenant: int = 0) -> None:
        await asyncio.to_thread(self._execute_blocking, statement, args, tenant)

    def _execute_blocking(
        self, statement: LiteralString, args: Sequence[object], tenant: int
    ) -> None:
        # Here and not above: services import this module and never call this.
        import psycopg

        with psycopg.connect(self._url, options=f"-csearch_path={SCHEMA},public") as connection:
            connection.execute("select set_config('reverie.tenant', %s, true)", (str(tenant),))
            connection.execute(statement, args)


def _encode_model(name: str, dims: int, probe: Sequence[float]) -> dict[str, object]:
    return {"vectors": build_table_name(name), "dims": dims, "probe": list(probe)}


async def load_model(connection: TenantConnection) -> TenantModel:
    """The tenant's model of vector search; its queries go to that model's table."""
    row = await connection.fetch_row("model_active")
    found = TenantModel(row["name"], row["dims"]) if row else TenantModel()
    connection.vector_table = found.vector_table
    return found


async def load_model_with_probe(connection: TenantConnection) -> TenantModel:
    """Loads the model as `load_model`, with its vector of the probe text."""
    found = await load_model(connection)
    return replace(found, probe=tuple(await connection.fetch_value("model_probe") or ()))


class EmbeddingModelStore:
    """The embedding models of tenants, and the vectors that a new one still lacks."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._cache: LRUCache[int, tuple[float, TenantModel]] = LRUCache(CACHE_SIZE)
        self._counts = CorpusCounts()

    async def get(self, tenant: int) -> TenantModel:
        """Returns the model of a tenant, at most `CACHE_SECONDS` old."""
        found = self.get_fresh(tenant)
        if found is None:
            async with self._db.tenant_reader(tenant) as connection:
                found = await load_model_with_probe(connection)
            self._cache[tenant] = (monotonic(), found)
        return found

    def get_fresh(self, tenant: int) -> TenantModel | None:
        """Returns the model of a tenant, if it was loaded within `CACHE_SECONDS`."""
        cached_at, found = self._cache.get(tenant, (-CACHE_SECONDS, None))
        return found if monotonic() - cached_at < CACHE_SECONDS else None

    async def preload_used(self, preload: Callable[[str], None]) -> None:
        """Requests that the models that most tenants were moved to are loaded."""
        for row in await self._db.fetch_rows("models_in_use", PRELOAD_LIMIT):
            preload(row["model"])

    def get_cached(self, tenant: int) -> TenantModel:
        """Returns the last result of `get` for a tenant; the first model if there is none."""
        return self._cache.get(tenant, (0.0, TenantModel()))[1]

    async def has_chosen_model(self, tenant: int) -> bool:
        """Whether a model was ever chosen for the tenant."""
        async with self._db.tenant_transaction(tenant) as connection:
            return await connection.fetch_row("model_active") is not None

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> TenantModel:
        """As `ModelMigration.begin`, with a service's rights; the vector table must exist."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_value("model_add", name, _encode_model(name, dims, probe))
        return TenantModel(name, dims)

    async def switch(self, tenant: int, name: str) -> None:
        """As `ModelMigration.switch`, with a service's rights.

        If the tenant was moved to another model meanwhile, that stays.
        """
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_value("model_switch_lock")
            await connection.fetch_value("model_switch", name)
        self._cache.pop(tenant, None)

    async def load_sample_texts(self, tenant: int, limit: int, chars: int) -> list[str]:
        """Loads the beginnings of the newest memories."""
        async with self._db.tenant_reader(tenant) as connection:
            return [row["text"] for row in await connection.fetch_rows("model_texts", limit, chars)]

    async def list_models(self, tenant: int) -> list[tuple[TenantModel, bool]]:
        """The models of a tenant; True marks the one of its vector search, which comes first."""
        async with self._db.tenant_reader(tenant) as connection:
            active = await load_model(connection)
            found = await connection.fetch_rows("model_list")
        others = [TenantModel(row["name"], row["dims"]) for row in found if not row["active"]]
        return [(active, True), *((model, False) for model in others if model.name != active.name)]

    async def find_backlog(self, principal: Principal, limit: int) -> EnrichmentBacklog:
        """What waits for enrichment in the scopes that the caller may read, `limit` at most."""
        async with self._db.tenant_reader(principal.tenant) as connection:
            [row] = await connection.fetch_rows("enrichment_backlog", list(principal.reads), limit)
        return EnrichmentBacklog(**row)

    async def index_vectors(self, tenant: int, model: TenantModel, limit: int) -> int:
        """Adds some vectors of large tenants to the HNSW index; returns the count."""
        async with self._db.tenant_reader(tenant) as connection:
            connection.vector_table = model.vector_table
            if not await self._counts.uses_vector_index(connection):
                return 0
        async with self._db.tenant_transaction(tenant, durable=False) as connection:
            connection.vector_table = model.vector_table
            return len(await connection.fetch_rows("vectors_index", limit))

    async def list_missing_chunks(
        self, tenant: int, model: TenantModel, after: int, limit: int
    ) -> list[MissingChunk]:
        """Chunks that the model has no vectors of, by their number."""
        async with self._db.tenant_transaction(tenant) as connection:
            connection.vector_table = model.vector_table
            found = await connection.fetch_rows("reembed_missing_chunks", after, limit)
        return [
            MissingChunk(
                row["no"],
                searched_text(row["content"], row["metadata"])[row["start"] : row["stop"]],
            )
            for row in found
        ]

    async def put_vectors(
        self, tenant: int, model: TenantModel, vectors: Sequence[tuple[int, Vector]]
    ) -> None:
        """Stores vectors by the number of their chunk."""
        async with self._db.tenant_transaction(tenant) as connection:
            connection.vector_table = model.vector_table
            await connection.execute_many(
                "reembed_put", [(number, HalfVector(vector)) for number, vector in vectors]
            )

    async def count_vectors(self, tenant: int, model: TenantModel) -> tuple[int, int]:
        """Counts the chunks with a vector, and all chunks."""
        async with self._db.tenant_transaction(tenant) as connection:
            connection.vector_table = model.vector_table
            [row] = await connection.fetch_rows("reembed_count")
        return row["done"], row["chunks"]

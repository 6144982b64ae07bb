"""Fills the vectors of another embedding model and switches a tenant to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from reverie.inference.embedder import Embedder
from reverie.inference.model_manager import PROBE_TEXT
from reverie.store.search.embedding_models import EmbeddingModelStore, TenantModel

BATCH_SIZE = 64

ReembedProgress = Callable[[int, int], None]
"""A callback: chunks that have a vector of the model, and chunks in all."""


class ModelSwitcher(Protocol):
    """Selects the model of a tenant."""

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> TenantModel:
        """Registers a model to be filled; an earlier registration is kept."""
        ...

    async def switch(self, tenant: int, name: str) -> None:
        """Makes it the tenant's model of vector search."""
        ...


async def reembed(
    models: EmbeddingModelStore,
    switcher: ModelSwitcher,
    embedder: Embedder,
    tenant: int,
    on_progress: ReembedProgress = lambda done, total: None,
) -> int:
    """Creates the missing vectors of the model, then switches to it; returns the number created.

    Safe to interrupt and to repeat: it resumes. The model's vector table must exist. Chunks that
    were written with the old model during the switch are filled afterwards.
    """
    [probe] = await embedder.embed([PROBE_TEXT])
    registration = (tenant, embedder.name, embedder.dims, [float(x) for x in probe])
    model = await switcher.begin(*registration)
    vector_count = await fill_missing_vectors(models, embedder, tenant, model, on_progress)
    while await models.index_vectors(tenant, model, BATCH_SIZE):
        pass
    await switcher.switch(tenant, model.name)
    return vector_count + await fill_missing_vectors(models, embedder, tenant, model, on_progress)


async def fill_missing_vectors(
    models: EmbeddingModelStore,
    embedder: Embedder,
    tenant: int,
    model: TenantModel,
    on_progress: ReembedProgress = lambda done, total: None,
) -> int:
    """Creates the missing vectors of the model; returns the number created."""
    after_number = vector_count = 0
    while due := await models.list_missing_chunks(tenant, model, after_number, BATCH_SIZE):
        vectors = await embedder.embed([chunk.text for chunk in due])
        await models.put_vectors(
            tenant,
            model,
            [(chunk.number, vector) for chunk, vector in zip(due, vectors, strict=True)],
        )
        after_number, vector_count = due[-1].number, vector_count + len(due)
        on_progress(*await models.count_vectors(tenant, model))
    return vector_count

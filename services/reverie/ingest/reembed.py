"""Another model's vectors, filled beside those that recall goes by, and switched to at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from reverie.inference.embedder import Embedder
from reverie.inference.slot import PROBE
from reverie.store.models import Models, Pointer

BATCH = 64

Told = Callable[[int, int], None]
"""Told how many chunks have a vector of the model, of how many."""


class Moving(Protocol):
    """Who may say which model a tenant goes by."""

    async def begin(self, tenant: int, name: str, dims: int, probe: Sequence[float]) -> Pointer:
        """Notes a model that is to be filled; what was noted of it first stands."""
        ...

    async def switch(self, tenant: int, name: str) -> None:
        """From now on the tenant's meaning goes by that model."""
        ...


async def reembed(
    models: Models, moving: Moving, embedder: Embedder, tenant: int, told: Told
) -> int:
    """Fills what the model has no vectors of, then switches; answers how many it made.

    Safe to break off and to repeat: it goes on where it was. The model's vector table must stand.
    Chunks that were written with the old model while it was switched are filled after it.
    """
    [probe] = await embedder.embed([PROBE])
    told_of = (tenant, embedder.name, embedder.dims, [float(x) for x in probe])
    to = await moving.begin(*told_of)
    made = await fill(models, embedder, tenant, to, told)
    while await models.walk(tenant, to, BATCH):
        pass
    await moving.switch(tenant, to.name)
    return made + await fill(models, embedder, tenant, to, told)


async def fill(models: Models, embedder: Embedder, tenant: int, to: Pointer, told: Told) -> int:
    """Fills what the model has no vectors of; answers how many it made."""
    after = made = 0
    while due := await models.due(tenant, to, after, BATCH):
        vectors = await embedder.embed([one.text for one in due])
        await models.put(
            tenant, to, [(one.no, vector) for one, vector in zip(due, vectors, strict=True)]
        )
        after, made = due[-1].no, made + len(due)
        told(*await models.counts(tenant, to))
    return made

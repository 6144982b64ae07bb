"""Models over HTTP: what the gateway is set to use, and what the tenant's meaning goes by."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.contracts.models import ModelBody, Models
from reverie.domain.access import Principal
from reverie.inference.asking import language_endpoint
from reverie.inference.catalogue import MODELS, SPARSE_MODEL
from reverie.recall.parts import Parts
from reverie.runtime.calls import Call
from reverie.runtime.routes import Route
from reverie.runtime.settings import Settings
from reverie.store.models import Pointer


def routes(parts: Parts) -> list[Route]:
    """The table of models."""
    doors = Doors(parts)
    return [
        Route("GET", "/v1/models", doors.models, answer=Models,
              summary="The embedding and language models in use, and how far they are"),
    ]  # fmt: skip


class Doors:
    """The handlers, around the parts of the service."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def models(self, call: Call[None, None]) -> Models:
        """`GET /v1/models`."""
        who = call.principal
        noted = await self._parts.models.noted(who.tenant)
        own = [await self._embedding(who, of, active) for of, active in noted]
        return Models(models=[*own, *self._sparse(), *self._parts.other_models])

    async def _embedding(self, who: Principal, of: Pointer, active: bool) -> ModelBody:
        """An embedding model of the tenant; of one beside the active one, how far it is filled."""
        slot, known = self._parts.model, MODELS.get(of.name)
        filled, chunks = (None, None) if active else await self._parts.models.counts(who.tenant, of)
        return ModelBody(
            role="embedding",
            name=of.name,
            place="endpoint" if slot.is_endpoint(of.name) else "local",
            state=slot.state(of.name),
            active=active,
            dims=of.dims,
            max_tokens=known.max_tokens if known else None,
            licence=known.licence if known else None,
            filled=filled,
            chunks=chunks,
            used_for=["recall", "ingest", "dream"] if active else [],
        )

    def _sparse(self) -> Iterator[ModelBody]:
        slot, known = self._parts.model, MODELS[SPARSE_MODEL]
        if slot.sparse is not None or slot.wants_sparse:
            yield ModelBody(
                role="sparse",
                name=SPARSE_MODEL,
                place="local",
                state="ready" if slot.sparse else "missing",
                dims=known.dims,
                max_tokens=known.max_tokens,
                licence=known.licence,
                used_for=["recall", "ingest"],
            )


def other_models(settings: Settings) -> Iterator[ModelBody]:
    """The models that are the same for all tenants, by name; no address, no key."""
    if settings.rerank_dir is not None:
        yield ModelBody(
            role="reranker",
            name=settings.rerank_dir.name,
            place="local",
            state="ready",
            used_for=["recall"],
        )
    elif settings.rerank_url is not None:
        yield ModelBody(
            role="reranker",
            name=settings.rerank_model,
            place="endpoint",
            state="ready",
            used_for=["recall"],
        )
    if (language := language_endpoint(settings)) is not None:
        uses = {
            "dream": True,
            "recall": settings.rephrase_seconds > 0,
            "review": settings.review != "off",
            "reflect": settings.reflect,
        }
        yield ModelBody(
            role="language",
            name=language.model,
            provider=language.provider,
            place="endpoint",
            state="ready",
            used_for=[use for use, wanted in uses.items() if wanted],
        )

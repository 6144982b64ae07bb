"""Route that lists the models in use and how far their vectors are filled."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.contracts.admin import EnrichmentBacklogBody, ModelBody, ModelListResponse
from reverie.domain.access.principals import Principal
from reverie.inference.llm_endpoint import build_language_endpoint
from reverie.inference.model_catalogue import MODELS, SPARSE_MODEL
from reverie.runtime.http.calls import Call
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.settings.settings import Settings
from reverie.store.search.embedding_models import TenantModel
from reverie_services.recall.dependencies import ModelDependencies

MAX_BACKLOG = 1_000
"""Memories that wait are counted up to here."""

routes = RouteTable[ModelDependencies]()


@routes.add("GET /v1/models")
async def list_models(deps: ModelDependencies, call: Call[None, None]) -> ModelListResponse:
    """List the models in use and their progress."""
    principal = call.principal
    tenant_models = await deps.embedding_models.list_models(principal.tenant)
    embedding_bodies = [
        await _build_embedding_body(deps, principal, model, active)
        for model, active in (tenant_models if deps.model_manager.embeds else ())
    ]
    backlog = await deps.embedding_models.find_backlog(principal, MAX_BACKLOG)
    return ModelListResponse(
        models=[*embedding_bodies, *_build_sparse_bodies(deps), *deps.shared_models],
        enrichment=EnrichmentBacklogBody.model_validate(backlog, from_attributes=True),
    )


async def _build_embedding_body(
    deps: ModelDependencies, principal: Principal, model: TenantModel, active: bool
) -> ModelBody:
    """Builds the body of an embedding model; an inactive one includes its progress."""
    manager, catalogue_entry = deps.model_manager, MODELS.get(model.name)
    vector_count, chunk_count = (
        (None, None)
        if active
        else await deps.embedding_models.count_vectors(principal.tenant, model)
    )
    return ModelBody(
        role="embedding",
        name=model.name,
        location="endpoint" if manager.is_endpoint_model(model.name) else "local",
        state=manager.get_state(model.name),
        active=active,
        dims=model.dims,
        max_tokens=catalogue_entry.max_tokens if catalogue_entry else None,
        licence=catalogue_entry.licence if catalogue_entry else None,
        embedded=vector_count,
        chunks=chunk_count,
        used_for=["recall", "ingest", "dream"] if active else [],
    )


def _build_sparse_bodies(deps: ModelDependencies) -> Iterator[ModelBody]:
    manager, catalogue_entry = deps.model_manager, MODELS[SPARSE_MODEL]
    if manager.uses_sparse:
        yield ModelBody(
            role="sparse",
            name=SPARSE_MODEL,
            location="local",
            state="ready" if manager.sparse_encoder else "missing",
            dims=catalogue_entry.dims,
            max_tokens=catalogue_entry.max_tokens,
            licence=catalogue_entry.licence,
            used_for=["recall", "ingest"],
        )


def list_shared_models(settings: Settings) -> Iterator[ModelBody]:
    """The models that are the same for all tenants, by name; no address, no key."""
    if settings.rerank_model_dir is not None:
        yield ModelBody(
            role="reranker",
            name=settings.rerank_model_dir.name,
            location="local",
            state="ready",
            used_for=["recall"],
        )
    elif settings.rerank_url is not None:
        yield ModelBody(
            role="reranker",
            name=settings.rerank_model,
            location="endpoint",
            state="ready",
            used_for=["recall"],
        )
    if (language := build_language_endpoint(settings)) is not None:
        uses = {
            "dream": True,
            "recall": settings.query_expansion_timeout > 0,
            "review": settings.review_mode != "off",
            "reflect": settings.reflection_enabled,
        }
        yield ModelBody(
            role="language",
            name=language.model,
            provider=language.provider,
            location="endpoint",
            state="ready",
            used_for=[use for use, enabled in uses.items() if enabled],
        )

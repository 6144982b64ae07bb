"""Moves tenants with East Asian memories to a multilingual embedding model."""

from __future__ import annotations

import structlog

from reverie.domain.core.errors import ReverieError
from reverie.domain.text.characters import is_mostly_east_asian
from reverie.inference.model_catalogue import DEFAULT_MODEL, MULTILINGUAL_MODEL
from reverie.runtime.observability.tracing import span
from reverie.runtime.settings.settings import Settings
from reverie_services.ingest.dependencies import ModelSelectionDependencies
from reverie_services.ingest.enrich.reembed import fill_missing_vectors, reembed

log = structlog.get_logger("reverie.ingest")

SAMPLE_SIZE, SAMPLE_CHARS = 200, 400
"""The number of newest memories that are examined, and the length read of each."""


def may_choose_model(settings: Settings) -> bool:
    """Whether a tenant may be moved: nobody has chosen another model than the default one."""
    return (
        settings.auto_multilingual_model
        and settings.embeddings_enabled
        and settings.embedding_url is None
        and settings.embedding_model == DEFAULT_MODEL
    )


async def run_model_selection(deps: ModelSelectionDependencies) -> None:
    """Examines one tenant after another until cancelled.

    A tenant that could not be moved is examined again, with or without new memories.
    """
    while True:
        tenant = await deps.queue.next_tenant()
        retry = True
        try:
            await select_model(deps, tenant)
            retry = tenant in deps.queue.unreadable
        except ReverieError as error:
            details = {"model": MULTILINGUAL_MODEL, "reason": str(error)}
            log.warning("model_not_selected", tenant=tenant, **details)
        except Exception as error:
            log.exception("model_selection_failed", tenant=tenant, error=type(error).__name__)
        if retry:
            deps.queue.retry_later(tenant)


async def select_model(deps: ModelSelectionDependencies, tenant: int) -> bool:
    """Moves the tenant if most of its memories are East Asian; returns whether it did.

    Safe to repeat. A tenant that was moved before keeps its model. If a model for its memories is
    not allowed or cannot be loaded, the queue lists the tenant as unreadable.
    """
    models, unreadable = deps.models, deps.queue.unreadable
    if await models.has_chosen_model(tenant):
        unreadable.discard(tenant)
        await _resume_fill(deps, tenant)
        return False
    if not is_mostly_east_asian(await models.load_sample_texts(tenant, SAMPLE_SIZE, SAMPLE_CHARS)):
        unreadable.discard(tenant)
        return False
    unreadable.add(tenant)
    if not deps.is_allowed:
        return False
    with span("choose a model"):
        await deps.model_manager.wait_for_first_attempt()
        embedder = await deps.model_manager.load(MULTILINGUAL_MODEL)
        # `GET /v1/models` reports the progress.
        vector_count = await reembed(models, models, embedder, tenant)
    unreadable.discard(tenant)
    deps.queue.complete.add(tenant)
    log.info("model_selected", tenant=tenant, model=embedder.name, vectors=vector_count)
    return True


async def _resume_fill(deps: ModelSelectionDependencies, tenant: int) -> None:
    """Fills the missing vectors if moving was interrupted after the switch.

    A process checks this once: after the switch, nothing is written without a vector.
    """
    models, complete = deps.models, deps.queue.complete
    model = await models.get(tenant)
    if model.name == MULTILINGUAL_MODEL and tenant not in complete:
        embedder = await deps.model_manager.load(model.name)
        await fill_missing_vectors(models, embedder, tenant, model)
        complete.add(tenant)

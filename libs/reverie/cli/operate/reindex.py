"""`reverie reindex` rebuilds what is derived; `reverie reembed` moves tenants to another model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import err, plural
from reverie.domain.core.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.inference.model_manager import ModelManager
    from reverie.runtime.settings.settings import Settings
    from reverie_services.ingest.enrich.reindex import ReindexTarget


@click.command("reindex")
@click.option("--tenant", help="Only this tenant.")
@click.option(
    "--parts", default="words,vectors,anchors", help="Comma-separated: words, vectors, anchors."
)
@common_options
def reindex(options: CommonOptions, tenant: str | None, parts: str) -> None:
    """Rebuild derived data: postings, vectors, and anchors of files and entities.

    Services can run meanwhile. It works in batches, and a repeated run continues
    where the last one stopped. It uses REVERIE_DATABASE_MIGRATION_URL, else
    REVERIE_DATABASE_URL, else the running embedded Postgres.

    Example: reverie reindex --tenant default --parts words

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.app.operator_access import find_tenants, resolve_database_url
    from reverie.runtime.observability.logs import configure_logs
    from reverie_services.ingest.enrich.reindex import ReindexTarget

    settings = options.settings()
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    names = [name.strip() for name in parts.split(",") if name.strip()]
    choices = [target.value for target in ReindexTarget]
    if not names or not set(names) <= set(choices):
        raise InvalidInput("--parts", f"expected some of {','.join(choices)}")
    targets, url = [ReindexTarget(name) for name in names], resolve_database_url(settings)
    results = asyncio.run(_rebuild_tenants(settings, url, find_tenants(url, tenant), targets))
    lines = [
        f"{name}: {', '.join(f'{count} {part}' for part, count in counts.items())}"
        for name, counts in results.items()
    ]
    options.print_result(results, *lines)


async def _rebuild_tenants(
    settings: Settings,
    url: str,
    tenants: Sequence[tuple[int, str]],
    targets: Sequence[ReindexTarget],
) -> dict[str, dict[str, int]]:
    from reverie.store.db.database import open_database
    from reverie.store.memories.enrichment import EnrichmentStore
    from reverie.store.search.reindex import ReindexStore
    from reverie_services.ingest.enrich.reindex import ReindexDependencies, reindex_tenant

    results: dict[str, dict[str, int]] = {}
    async with open_database(url, size=2) as database, _open_model(settings, targets) as model:
        tools = ReindexDependencies(
            model,
            EnrichmentStore(database),
            ReindexStore(database),
        )
        for tenant_id, name in tenants:

            def report(part: str, count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {part} {count} of {total}", markup=False)

            results[name] = await reindex_tenant(tools, tenant_id, targets, report)
    return results


@asynccontextmanager
async def _open_model(
    settings: Settings, targets: Sequence[ReindexTarget]
) -> AsyncIterator[ModelManager]:
    """The model, loaded if vectors are a target. Raises `Unavailable` if it cannot be loaded."""
    import asyncio

    from reverie_services.ingest.enrich.reindex import ReindexTarget
    from reverie_services.startup import build_model_manager

    models = build_model_manager(settings, settings.recall_sparse)
    if ReindexTarget.VECTORS not in targets:
        yield models
        return
    loading = asyncio.create_task(models.run())
    try:
        await models.wait_for_first_attempt()
        await models.get_embedder()
        yield models
    finally:
        loading.cancel()
        with suppress(asyncio.CancelledError):
            await loading


@click.command("reembed")
@click.option("--tenant", help="Only this tenant.")
@click.option("--model", help="The model or embedding profile to use, instead of embedding_model.")
@common_options
def reembed(options: CommonOptions, tenant: str | None, model: str | None) -> None:
    """Compute the vectors of the configured model, then switch to it.

    Recall uses the old vectors meanwhile, and they are kept. The services must
    be able to load both models. It uses REVERIE_DATABASE_MIGRATION_URL, else
    REVERIE_DATABASE_URL, else the running embedded Postgres. It can be
    interrupted and repeated.

    Example: reverie reembed --tenant default

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.app.operator_access import find_tenants, resolve_database_url
    from reverie.runtime.observability.logs import configure_logs

    settings = options.settings()
    name = model or settings.embedding_model
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    url = resolve_database_url(settings)
    counts = asyncio.run(reembed_tenants(settings, url, find_tenants(url, tenant), name))
    lines = [f"{each}: {plural(count, 'vector')} of {name}" for each, count in counts.items()]
    options.print_result(counts, *lines)


async def reembed_tenants(
    settings: Settings, url: str, tenants: Sequence[tuple[int, str]], model: str | None = None
) -> dict[str, int]:
    """Computes the missing vectors of each tenant; returns their numbers by tenant.

    `model`: a model or an embedding profile; None is the configured model.
    """
    from reverie.store.db.database import open_database
    from reverie.store.search.embedding_models import EmbeddingModelStore, ModelMigration
    from reverie_services.ingest.enrich.reembed import reembed as fill_vectors
    from reverie_services.startup import build_model_manager

    embedder = await build_model_manager(settings).load(model or settings.embedding_model)
    model_switch = ModelMigration(url)
    await model_switch.create_vector_table(embedder.name, embedder.dims)
    counts: dict[str, int] = {}
    async with open_database(url, size=2) as database:
        for tenant_id, name in tenants:

            def report(count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {count} of {total}", markup=False)

            counts[name] = await fill_vectors(
                EmbeddingModelStore(database), model_switch, embedder, tenant_id, report
            )
    return counts

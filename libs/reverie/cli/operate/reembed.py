"""`reverie reembed`: fills the vectors of another model and switches to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import CommonOptions, common_options
from reverie.cli.app.output import err, plural

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings


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

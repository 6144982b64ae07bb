"""`reverie reembed`: fills the vectors of another model and switches to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.domain.core.errors import NotFound

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings

TenantName = Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.")]


def reembed(
    tenant: TenantName = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Fill the vectors of the model that is set, then switch to it.

    Recall goes on with the old vectors meanwhile, and the old ones stay. The
    services must know both models: those of Reverie by name, another by the
    setting model (with embedding_url, or a folder of that name in embedding_model_dir).
    Works on REVERIE_DATABASE_MIGRATION_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. Safe to break off and to repeat.

    Example: [bold]reverie reembed --tenant default[/]

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.runtime.observability.logs import configure_logs
    from reverie.store.platform.api_keys import list_tenants

    settings = resolve_settings(home, sets)
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    url = resolve_database_url(settings)
    tenants = [row for row in list_tenants(url) if tenant in (None, row[1])]
    if tenant is not None and not tenants:
        raise NotFound("tenant", tenant)
    counts = asyncio.run(reembed_tenants(settings, url, tenants))
    if json:
        print_json(counts)
        return
    for name, count in counts.items():
        out().print(f"{name}: {count} vectors of {settings.embedding_model}")


async def reembed_tenants(
    settings: Settings, url: str, tenants: Sequence[tuple[int, str]]
) -> dict[str, int]:
    from reverie.inference.embedding_endpoint import build_embedding_endpoint
    from reverie.inference.model_manager import ModelManager
    from reverie.store.db.database import open_database
    from reverie.store.search.embedding_models import EmbeddingModelStore, ModelMigration
    from reverie_services.ingest.enrich.reembed import reembed as fill

    slot = ModelManager(
        settings.embedding_model,
        settings.home,
        settings.embedding_model_dir,
        settings.embedding_threads,
        settings.model_download,
        endpoint=build_embedding_endpoint(
            settings.embedding_url, settings.embedding_dims, settings.embedding_key
        ),
    )
    embedder = await slot.load_now(settings.embedding_model)
    model_switch = ModelMigration(url)
    await model_switch.create_vector_table(embedder.name, embedder.dims)
    counts: dict[str, int] = {}
    async with open_database(url, size=2) as database:
        for tenant_id, name in tenants:

            def told(count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {count} of {total}")

            counts[name] = await fill(
                EmbeddingModelStore(database), model_switch, embedder, tenant_id, told
            )
    return counts

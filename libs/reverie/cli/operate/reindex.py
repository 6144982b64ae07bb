"""`reverie reindex`: rebuilds postings, vectors and anchors from memories and turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.app.common import Home, Json, Sets, err, out, print_json, resolve_settings
from reverie.domain.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from reverie.inference.model_manager import ModelManager
    from reverie.runtime.settings.settings import Settings
    from reverie_services.ingest.enrich.reindex import ReindexTarget

TenantName = Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.")]
Parts = Annotated[str, typer.Option("--what", help="Of words, vectors, anchors; with commas.")]


def reindex(
    tenant: TenantName = None,
    what: Parts = "words,vectors,anchors",
    home: Home = None,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Rebuild what is derived: words and postings, chunks and vectors, anchors and touches.

    Services may go on meanwhile. Works in batches and goes on where it was
    broken off; safe to repeat. Works on REVERIE_DATABASE_MIGRATION_URL, else
    REVERIE_DATABASE_URL, else the running embedded Postgres.

    Example: [bold]reverie reindex --tenant default --what words[/]

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.app.operator_access import resolve_database_url
    from reverie.runtime.observability.logs import configure_logs
    from reverie.store.platform.api_keys import list_tenants

    settings = resolve_settings(home, sets)
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    parts, url = _parse_parts(what), resolve_database_url(settings)
    tenants = [row for row in list_tenants(url) if tenant in (None, row[1])]
    if tenant is not None and not tenants:
        raise NotFound("tenant", tenant)
    results = asyncio.run(_rebuild_tenants(settings, url, tenants, parts))
    if json:
        print_json(results)
        return
    for name, counts in results.items():
        summary = ", ".join(f"{count} {part}" for part, count in counts.items())
        out().print(f"{name}: {summary}")


def _parse_parts(what: str) -> list[ReindexTarget]:
    from reverie_services.ingest.enrich.reindex import ReindexTarget

    names = [name.strip() for name in what.split(",") if name.strip()]
    choices = [choice.value for choice in ReindexTarget]
    if not names or not set(names) <= set(choices):
        raise InvalidInput("--what", f"use some of {','.join(choices)}")
    return [ReindexTarget(name) for name in names]


async def _rebuild_tenants(
    settings: Settings, url: str, tenants: Sequence[tuple[int, str]], what: Sequence[ReindexTarget]
) -> dict[str, dict[str, int]]:
    from reverie.store.db.database import open_database
    from reverie.store.memories.enrichment import EnrichmentStore
    from reverie.store.search.reindex import ReindexStore
    from reverie_services.ingest.enrich.reindex import ReindexDependencies, reindex_tenant
    from reverie_services.ingest.settings import build_ingest_settings

    results: dict[str, dict[str, int]] = {}
    async with open_database(url, size=2) as database, _open_model(settings, what) as model:
        tools = ReindexDependencies(
            build_ingest_settings(settings),
            model,
            EnrichmentStore(database),
            ReindexStore(database),
        )
        for tenant_id, name in tenants:

            def told(part: str, count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {part} {count} of {total}")

            results[name] = await reindex_tenant(tools, tenant_id, what, told)
    return results


@asynccontextmanager
async def _open_model(
    settings: Settings, what: Sequence[ReindexTarget]
) -> AsyncIterator[ModelManager]:
    """The model, loaded where vectors are wanted. Raises `Unavailable` where it cannot be."""
    import asyncio

    from reverie.inference.embedding_endpoint import build_embedding_endpoint
    from reverie.inference.model_manager import ModelManager
    from reverie_services.ingest.enrich.reindex import ReindexTarget

    slot = ModelManager(
        settings.embedding_model,
        settings.home,
        settings.embedding_model_dir,
        settings.embedding_threads,
        settings.model_download,
        settings.recall_sparse,
        build_embedding_endpoint(
            settings.embedding_url, settings.embedding_dims, settings.embedding_key
        ),
    )
    if ReindexTarget.VECTORS not in what:
        yield slot
        return
    loading = asyncio.create_task(slot.run_loading_loop())
    try:
        await slot.wait_for_first_attempt()
        slot.get_embedder()
        yield slot
    finally:
        loading.cancel()
        with suppress(asyncio.CancelledError):
            await loading

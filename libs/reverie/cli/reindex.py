"""`reverie reindex`: what is derived from memories and turns, derived anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from reverie.inference.slot import ModelSlot
    from reverie.ingest.reindex import What
    from reverie.runtime.settings import Settings

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
    broken off; safe to repeat. Works on REVERIE_MIGRATE_DATABASE_URL, else
    REVERIE_DATABASE_URL, else the running embedded Postgres.

    Example: [bold]reverie reindex --tenant default --what words[/]

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.place import admin_url
    from reverie.runtime.logs import configure_logs
    from reverie.store.bootstrap import tenant_names

    settings = settings_from(home, sets)
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    parts, url = _parts(what), admin_url(settings)
    known = [one for one in tenant_names(url) if tenant in (None, one[1])]
    if tenant is not None and not known:
        raise NotFound("tenant", tenant)
    done = asyncio.run(_rebuild(settings, url, known, parts))
    if json:
        print_json(done)
        return
    for name, counts in done.items():
        told = ", ".join(f"{count} {part}" for part, count in counts.items())
        out().print(f"{name}: {told}")


def _parts(what: str) -> list[What]:
    from reverie.ingest.reindex import What

    names = [name.strip() for name in what.split(",") if name.strip()]
    choices = [one.value for one in What]
    if not names or not set(names) <= set(choices):
        raise Invalid("--what", f"use some of {','.join(choices)}")
    return [What(name) for name in names]


async def _rebuild(
    settings: Settings, url: str, tenants: Sequence[tuple[int, str]], what: Sequence[What]
) -> dict[str, dict[str, int]]:
    from reverie.ingest.reindex import Tools, rebuild
    from reverie.ingest.settings import ingest_settings
    from reverie.store.database import open_database
    from reverie.store.enrichment import Enrichment
    from reverie.store.reindex import Reindex

    done: dict[str, dict[str, int]] = {}
    async with open_database(url, size=2) as database, _model(settings, what) as model:
        tools = Tools(ingest_settings(settings), model, Enrichment(database), Reindex(database))
        for number, name in tenants:

            def told(part: str, count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {part} {count} of {total}")

            done[name] = await rebuild(tools, number, what, told)
    return done


@asynccontextmanager
async def _model(settings: Settings, what: Sequence[What]) -> AsyncIterator[ModelSlot]:
    """The model, loaded where vectors are wanted. Raises `Unavailable` where it cannot be."""
    import asyncio

    from reverie.inference.endpoint import endpoint_of
    from reverie.inference.slot import ModelSlot
    from reverie.ingest.reindex import What

    slot = ModelSlot(
        settings.model,
        settings.home,
        settings.model_dir,
        settings.embed_threads,
        settings.model_pull,
        settings.recall_sparse,
        endpoint_of(settings.model_url, settings.model_dims, settings.model_key),
    )
    if What.VECTORS not in what:
        yield slot
        return
    loading = asyncio.create_task(slot.keep_loaded())
    try:
        await slot.tried()
        slot.ready()
        yield slot
    finally:
        loading.cancel()
        with suppress(asyncio.CancelledError):
            await loading

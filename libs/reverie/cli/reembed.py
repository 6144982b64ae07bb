"""`reverie reembed`: the vectors of another model, and the switch to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import NotFound

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings

TenantName = Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.")]


def reembed(
    tenant: TenantName = None, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Fill the vectors of the model that is set, then switch to it.

    Recall goes on with the old vectors meanwhile, and the old ones stay. The
    services must know both models: those of Reverie by name, another by the
    setting model (with model_url, or a folder of that name in model_dir).
    Works on REVERIE_MIGRATE_DATABASE_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. Safe to break off and to repeat.

    Example: [bold]reverie reembed --tenant default[/]

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not running.
    """
    import asyncio
    import sys

    from reverie.cli.place import admin_url
    from reverie.runtime.logs import configure_logs
    from reverie.store.bootstrap import tenant_names

    settings = settings_from(home, sets)
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    url = admin_url(settings)
    known = [one for one in tenant_names(url) if tenant in (None, one[1])]
    if tenant is not None and not known:
        raise NotFound("tenant", tenant)
    done = asyncio.run(_reembed(settings, url, known))
    if json:
        print_json(done)
        return
    for name, made in done.items():
        out().print(f"{name}: {made} vectors of {settings.model}")


async def _reembed(
    settings: Settings, url: str, tenants: Sequence[tuple[int, str]]
) -> dict[str, int]:
    from reverie.inference.endpoint import endpoint_of
    from reverie.inference.slot import ModelSlot
    from reverie.ingest.reembed import reembed as fill
    from reverie.store.database import open_database
    from reverie.store.models import Models, Moving

    slot = ModelSlot(
        settings.model,
        settings.home,
        settings.model_dir,
        settings.embed_threads,
        settings.model_pull,
        endpoint=endpoint_of(settings.model_url, settings.model_dims, settings.model_key),
    )
    embedder = await slot.opened(settings.model)
    moving = Moving(url)
    await moving.make_vectors(embedder.name, embedder.dims)
    done: dict[str, int] = {}
    async with open_database(url, size=2) as database:
        for number, name in tenants:

            def told(count: int, total: int, name: str = name) -> None:
                err().print(f"{name}: {count} of {total}")

            done[name] = await fill(Models(database), moving, embedder, number, told)
    return done

"""`reverie migrate`: the schema, the streams and their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.cli.common import Home, Json, Sets, out, print_json, settings_from

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings


def migrate(home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Bring the database schema up to date, and the streams where a NATS is set.

    Works on REVERIE_MIGRATE_DATABASE_URL, else REVERIE_DATABASE_URL, else the
    running embedded Postgres. Safe to repeat, also by several at once.

    With REVERIE_API_KEY set, that key stands afterwards.

    Example: [bold]reverie migrate --set database_url=postgresql://me@db/reverie[/]

    Exit codes: 0 ok, 1 failed or not reachable, 2 usage.
    """
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import ensure_key
    from reverie.store.migrate import migrate as bring_up

    settings = settings_from(home, sets)
    url = admin_url(settings)
    applied = bring_up(url)
    if settings.api_key is not None:
        ensure_key(url, settings.api_key.get_secret_value())
    streams = _streams(settings)
    if json:
        print_json({"applied": applied, "streams": streams})
        return
    out().print("\n".join(f"applied {name}" for name in applied) or "the schema is current")
    if streams:
        out().print("streams and consumers stand")


def _streams(settings: Settings) -> bool:
    if settings.nats_url is None:
        return False
    import asyncio

    from reverie.bus.streams import ensure_streams

    asyncio.run(ensure_streams(settings.nats_url.get_secret_value()))
    return True

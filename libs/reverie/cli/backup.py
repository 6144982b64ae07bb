"""`reverie admin backup` and `reverie admin restore`: database and streams as a folder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli.common import Home, Json, Sets, err, out, print_json, settings_from
from reverie.domain.errors import Conflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reverie.runtime.settings import Settings

DUMP, NOTE, STREAMS = "reverie.dump", "backup.json", "streams"

Folder = Annotated[str, typer.Argument(help="The folder of the backup.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def backup(folder: Folder, home: Home = None, sets: Sets = None, json: Json = False) -> None:
    """Write the database and the streams to a new folder, while services go on.

    Secrets are in none of it: keep the folder of secrets, or vault_key, elsewhere.

    Example: [bold]reverie admin backup ~/backups/monday[/]
    """
    import asyncio
    from datetime import UTC, datetime
    from json import dumps
    from pathlib import Path

    from reverie.bus.snapshot import take_all
    from reverie.cli.place import admin_url, bus_credentials, bus_url
    from reverie.runtime.health import package_version
    from reverie.store.dump import dump

    settings, place = settings_from(home, sets), Path(folder).expanduser().absolute()
    if place.exists() and any(place.iterdir()):
        raise Invalid("folder", f"{place} is not empty: name a new one")
    (place / STREAMS).mkdir(parents=True, exist_ok=True, mode=0o700)
    place.chmod(0o700)
    # The streams first: what they tell of is in the database then, or it is told again.
    taken = asyncio.run(take_all(bus_url(settings), place / STREAMS, bus_credentials(settings)))
    dump(admin_url(settings), _programs(settings), place / DUMP)
    note = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": package_version(),
        "bytes": (place / DUMP).stat().st_size,
        "messages": taken,
    }
    (place / NOTE).write_text(dumps(note, indent=2) + "\n")
    if json:
        print_json({"folder": str(place), **note})
    else:
        told = f"{place}: {note['bytes']} bytes, {sum(taken.values())} messages"
        out().print(told, markup=False)


def restore(
    folder: Folder, yes: Yes = False, home: Home = None, sets: Sets = None, json: Json = False
) -> None:
    """Put a backup in place of the database and the streams. Services must be stopped.

    With the embedded servers, they are started for it and stopped again. A backup of an
    older version is brought up to date.

    Example: [bold]reverie admin restore ~/backups/monday --yes[/]
    """
    import asyncio
    from pathlib import Path

    from reverie.bus.snapshot import give_all
    from reverie.cli.place import bus_credentials
    from reverie.store.dump import restore as put_back

    settings, place = settings_from(home, sets), Path(folder).expanduser().absolute()
    if not (place / DUMP).exists() or not (place / NOTE).exists():
        raise Invalid("folder", f"{place} holds no whole backup")
    if not yes and not typer.confirm(f"Replace all memories of {settings.home}?"):
        raise typer.Exit(1)
    with _servers(settings) as (database, bus):
        applied = put_back(database, _programs(settings), place / DUMP)
        given = asyncio.run(give_all(bus, place / STREAMS, bus_credentials(settings)))
    if json:
        print_json({"folder": str(place), "applied": applied, "messages": given})
        return
    out().print(f"restored from {place}: {sum(given.values())} messages", markup=False)
    err().print("Start the services again: `reverie up`.")


@contextmanager
def _servers(settings: Settings) -> Iterator[tuple[str, str]]:
    """The addresses of Postgres and NATS; embedded ones run while it is open."""
    import asyncio

    from reverie.embedded.backing import Bus, Database, open_both
    from reverie.embedded.home import open_home
    from reverie.embedded.lock import is_held, only_one

    home = open_home(settings.home)
    if is_held(home):
        raise Conflict(f"Reverie is up on {home.root}: end it by `reverie down` first")
    with only_one(home):
        database, bus = Database(settings, home), Bus(settings, home)
        try:
            asyncio.run(open_both(database, bus))
            yield database.admin_url, bus.url
        finally:
            for part in (*database.parts, *bus.parts):
                part.stop()


def _programs(settings: Settings) -> Path:
    """The folder of Postgres' programs."""
    from reverie.embedded.binaries import postgres_bin

    return postgres_bin(settings.postgres_bin)

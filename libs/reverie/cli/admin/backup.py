"""`reverie admin backup` and `restore`: the database and the streams as a folder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from reverie.cli.app.options import CommonOptions, common_options, yes_option
from reverie.cli.app.output import confirm, err, plural
from reverie.domain.core.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.runtime.settings.settings import Settings

DUMP_FILE, MANIFEST_FILE, STREAMS_FOLDER = "reverie.dump", "backup.json", "streams"


@click.command("backup")
@click.argument("folder", help="The folder of the backup.")
@common_options
def backup(options: CommonOptions, folder: str) -> None:
    """Back up the database and the streams to a new folder, while services run.

    The backup contains no secrets: keep the folder `secrets`, or vault_key, elsewhere.

    Example: reverie admin backup ~/backups/monday
    """
    import asyncio
    from datetime import UTC, datetime
    from json import dumps
    from pathlib import Path

    from reverie.bus.stream_backup import backup_streams
    from reverie.cli.app.operator_access import (
        build_bus_credentials,
        resolve_bus_url,
        resolve_database_url,
    )
    from reverie.embedded.servers.binaries import find_postgres_client
    from reverie.runtime.http.health import package_version
    from reverie.store.db.dump import dump
    from reverie.store.db.server_admin import load_server_facts

    settings, root = options.settings(), Path(folder).expanduser().absolute()
    if root.exists() and any(path.name != STREAMS_FOLDER for path in root.iterdir()):
        raise InvalidInput("folder", f"{root} is not empty: give a new folder")
    # Fails for an unwritable folder before it connects to the servers.
    (root / STREAMS_FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
    root.chmod(0o700)
    database = resolve_database_url(settings)
    programs = find_postgres_client(load_server_facts(database).version, settings.postgres_bin)
    # The streams are saved first: the database then contains what their messages refer to.
    message_counts = asyncio.run(
        backup_streams(
            resolve_bus_url(settings), root / STREAMS_FOLDER, build_bus_credentials(settings)
        )
    )
    dump(database, programs, root / DUMP_FILE)
    manifest = {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": package_version(),
        "bytes": (root / DUMP_FILE).stat().st_size,
        "messages": message_counts,
    }
    (root / MANIFEST_FILE).write_text(dumps(manifest, indent=2) + "\n")
    size = plural((root / DUMP_FILE).stat().st_size, "byte")
    summary = f"{root}: {size}, {plural(sum(message_counts.values()), 'message')}"
    options.print_result({"folder": str(root), **manifest}, summary)


@click.command("restore")
@click.argument("folder", help="The folder of the backup.")
@yes_option
@common_options
def restore(options: CommonOptions, folder: str, yes: bool) -> None:
    """Replace the database and the streams with a backup. Services must be stopped.

    Embedded servers are started for it and stopped again. A backup of an older
    version is migrated.

    Example: reverie admin restore ~/backups/monday --yes
    """
    import asyncio
    from pathlib import Path

    from reverie.bus.stream_backup import restore_streams
    from reverie.cli.app.operator_access import build_bus_credentials
    from reverie.embedded.servers.binaries import find_postgres_client
    from reverie.store.db.dump import restore as restore_dump
    from reverie.store.db.server_admin import load_server_facts

    settings, root = options.settings(), Path(folder).expanduser().absolute()
    if not (root / DUMP_FILE).exists() or not (root / MANIFEST_FILE).exists():
        raise InvalidInput("folder", f"{root} is not a complete backup")
    if not yes and not confirm(f"Replace all memories of {settings.home}?", abort=False):
        raise click.exceptions.Exit(1)
    with _open_servers(settings) as (database, bus):
        version = load_server_facts(database).version
        programs = find_postgres_client(version, settings.postgres_bin)
        applied = restore_dump(database, programs, root / DUMP_FILE)
        message_counts = asyncio.run(
            restore_streams(bus, root / STREAMS_FOLDER, build_bus_credentials(settings))
        )
    options.print_result(
        {"folder": str(root), "applied": applied, "messages": message_counts},
        f"restored from {root}: {plural(sum(message_counts.values()), 'message')}",
    )
    if not options.json:
        how = "" if settings.database_url else " with `reverie up`"
        err().print(f"Start the services again{how}.")


@contextmanager
def _open_servers(settings: Settings) -> Iterator[tuple[str, str]]:
    """The URLs of Postgres and NATS; embedded servers run inside of the context."""
    import asyncio

    from reverie.embedded.home import open_home
    from reverie.embedded.lock import hold_home_lock, is_home_locked
    from reverie.embedded.servers.backends import NatsBackend, PostgresBackend, open_backends

    home = open_home(settings.home)
    if is_home_locked(home):
        raise Conflict(f"Reverie runs on {home.root}: stop it with `reverie down` first")
    with hold_home_lock(home):
        database, bus = PostgresBackend(settings, home), NatsBackend(settings, home)
        try:
            asyncio.run(open_backends(database, bus))
            yield database.admin_url, bus.url
        finally:
            for component in (*database.processes, *bus.processes):
                component.stop()

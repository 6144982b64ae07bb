"""Dumps and restores the whole schema with pg_dump and pg_restore."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg

from reverie.domain.core.errors import Conflict, Unavailable
from reverie.store.db.migrate import migrate
from reverie.store.db.names import SCHEMA

_APPLICATION_NAME = "reverie"
"""The application name of the services at the server."""


def dump(url: str, programs: Path, file: Path) -> None:
    """Writes the schema with all its rows, as of one moment, while services go on.

    `programs`: the folder of `pg_dump`, no older than the server. The user must see past row-level
    security. Raises `Unavailable`.
    """
    arguments = ["--format=custom", f"--schema={SCHEMA}", f"--file={file}"]
    _run_program(programs / "pg_dump", arguments, url)


def restore(url: str, programs: Path, file: Path) -> list[str]:
    """Puts what was dumped in place of the schema, then brings it up to date; what was applied.

    Whole or not at all. Raises `Conflict` while services are connected, and `Unavailable`.
    """
    # Roles and the extension belong to the server and are in no dump.
    migrate(url)
    _drop_schema(url)
    _run_program(
        programs / "pg_restore", ["--exit-on-error", "--single-transaction", str(file)], url
    )
    return migrate(url)


def check_no_services(url: str) -> None:
    """Raises `Conflict` while services are connected."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and application_name = %s",
            (_APPLICATION_NAME,),
        ).fetchone()
    if found and found[0]:
        raise Conflict("services are connected to this database: stop them first")


def _drop_schema(url: str) -> None:
    check_no_services(url)
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(f"drop schema if exists {SCHEMA} cascade")


def _run_program(program: Path, arguments: list[str], url: str) -> None:
    """The password goes by the environment: arguments are for all to see."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = (parts.username or "") + "@" if parts.username else ""
    safe_url = urlunsplit(parts._replace(netloc=user + host))
    password = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
    try:
        result = subprocess.run(  # noqa: S603 (the arguments are ours)
            [program, *arguments, f"--dbname={safe_url}"],
            env={**os.environ, **password},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise Unavailable(program.name, f"{program} does not run: set postgres_bin") from error
    if result.returncode:
        message = (result.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise Unavailable(program.name, message)

"""Applies the SQL migrations in order, under an advisory lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.resources import as_file, files
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from yoyo import get_backend, read_migrations

from reverie.domain.core.errors import Misconfigured, Unavailable

SCHEMA = "reverie"
MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 8)
LOCK_SECONDS = 5
"""How long a migration waits for a table that is in use, and services behind it."""

MigrationProgress = Callable[[str, int, int], None]
"""Is told of a migration that begins: its name, its number and of how many."""


def ignore_progress(_name: str, _number: int, _of: int) -> None:
    """Tells nobody."""


def migrate(url: str, on_progress: MigrationProgress = ignore_progress) -> list[str]:
    """Brings the database to the newest schema; safe to run by several at once.

    Returns the names of the migrations applied. Raises `Misconfigured` on a server that is
    too old or lacks pgvector and for a user that may not, `Unavailable` where it cannot be
    reached, or where a table stays in use: whoever waits for that holds up all behind it. What
    was applied until then stays, and the next try goes on from there.
    """
    try:
        _prepare_server(url)
        with (
            as_file(files("reverie.store") / "migrations") as folder,
            get_backend(_yoyo_url(url)) as backend,
        ):
            # A connection for each migration takes as long as what most of them do.
            backend.copy = partial(nullcontext, backend)
            # Of the server and gone with its session, unlike yoyo's own lock: a row, which a
            # killed process leaves behind.
            backend.execute("set lock_timeout = 0")
            backend.execute("select pg_advisory_lock(hashtext('reverie.migrate'))")
            backend.execute("reset lock_timeout")
            backend.break_lock()
            pending = backend.to_apply(read_migrations(str(folder)))
            for number, migration in enumerate(pending, start=1):
                on_progress(migration.id, number, len(pending))
                backend.apply_one(migration)
            return [applied.id for applied in pending]
    except psycopg.errors.InsufficientPrivilege as error:
        reason = error.diag.message_detail or error.diag.message_primary
        raise Misconfigured("database_url", f"this user may not migrate: {reason}") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise Unavailable("a table", "it stays in use: try again in a moment") from error


def list_pending_migrations(url: str) -> list[str]:
    """Names of the migrations that the database lacks. Writes nothing; any service's role may ask.

    Raises `Unavailable` where it cannot be reached.
    """
    with as_file(files("reverie.store") / "migrations") as folder:
        names = [migration.id for migration in read_migrations(str(folder))]
    with _connect(url) as connection:
        if not _can_read_migrations(connection):
            return names
        connection.execute("select set_config('search_path', %s, false)", (SCHEMA,))
        rows = connection.execute("select migration_id from _yoyo_migration")
        applied = {str(row[0]) for row in rows}
    return [name for name in names if name not in applied]


def _can_read_migrations(connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Whether the list of what was applied is there for this role; it becomes so by a migration."""
    found = connection.execute(
        "select coalesce(bool_or(has_table_privilege(c.oid, 'select')"
        " and has_schema_privilege(n.oid, 'usage')), false)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relname = '_yoyo_migration'",
        (SCHEMA,),
    ).fetchone()
    return found == (True,)


@contextmanager
def _connect(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            yield connection
    except psycopg.errors.UndefinedFile:
        raise
    except psycopg.OperationalError as error:
        raise Unavailable("Postgres", "is it running, and is the address right?") from error


def _prepare_server(url: str) -> None:
    """Checks the server and makes the schema and the extension."""
    try:
        with _connect(url) as connection:
            version = connection.info.server_version // 10_000
            if version < MIN_POSTGRES:
                raise Misconfigured(
                    "database_url", f"Postgres {version} is too old: use {MIN_POSTGRES} or later"
                )
            connection.execute("select pg_advisory_lock(hashtext('reverie.prepare'))")
            connection.execute(f"create schema if not exists {SCHEMA}")
            connection.execute("create extension if not exists vector with schema public")
            found = connection.execute(
                "select extversion from pg_extension where extname = 'vector'"
            ).fetchone()
    except psycopg.errors.UndefinedFile as error:
        raise Misconfigured("database_url", "the server lacks pgvector: install it") from error
    installed = str(found[0]) if found else "0"
    if tuple(int(part) for part in installed.split(".")[:2]) < MIN_PGVECTOR:
        raise Misconfigured(
            "database_url",
            f"pgvector {installed} is too old: use 0.8 or later (alter extension vector update)",
        )


def _yoyo_url(url: str) -> str:
    """The address as yoyo reads it: psycopg 3, our schema first, patient for a while only."""
    parts = urlsplit(url)
    options = "options=" + quote(
        f"-csearch_path={SCHEMA},public -clock_timeout={LOCK_SECONDS * 1000:.0f}"
    )
    query = "&".join(filter(None, (parts.query, options)))
    return urlunsplit(("postgresql+psycopg", parts.netloc, parts.path, query, parts.fragment))

"""The database schema: a baseline for an empty database, and forward-only migrations after it.

`schema/*.sql` is the whole schema: an empty database gets it in one transaction, in the order of
the file names. `migrations/*.sql` changes databases of earlier releases (yoyo). Whatever those do
is in `schema/` too, so a new database has every known migration marked as applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.resources import as_file, files
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.store.db.roles import SCHEMA

MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 8)
LOCK_SECONDS = 5
"""Time that a migration waits for a table in use, while services wait behind it."""

MigrationProgress = Callable[[str, int, int], None]
"""Is called before each step with its name, its number and the number of steps."""

_Connection = psycopg.Connection[tuple[Any, ...]]


def ignore_progress(_name: str, _number: int, _of: int) -> None:
    """Reports nothing."""


def migrate(url: str, on_progress: MigrationProgress = ignore_progress) -> list[str]:
    """Brings the database to the newest schema; safe to run concurrently.

    Returns the names of the schema files or migrations applied. Raises `Misconfigured` on a server
    that is too old or lacks pgvector, for a user without the privileges, and for a schema older
    than the baseline. Raises `Unavailable` if the server cannot be reached, or if a table remains
    in use. Migrations applied until then remain, and the next call continues.
    """
    try:
        with _connect(url) as connection:
            _check_server(connection)
            # Belongs to the session, so that a killed process leaves no lock behind.
            connection.execute("select pg_advisory_lock(hashtext('reverie.migrate'))")
            connection.execute(f"set search_path = {SCHEMA}, public")
            connection.execute(f"set lock_timeout = '{LOCK_SECONDS * 1000:.0f}ms'")
            state = _state(connection)
            if state == "unknown":
                raise Misconfigured(
                    "database_url",
                    "its schema was not made by a released version: use an empty database",
                )
            new = state == "empty"
            applied = _apply_schema(connection, on_progress) if new else []
            if _pending_migrations(connection):
                applied += _apply_migrations(url, new, on_progress)
            return applied
    except psycopg.errors.InsufficientPrivilege as error:
        reason = error.diag.message_detail or error.diag.message_primary
        raise Misconfigured("database_url", f"this user may not migrate: {reason}") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise Unavailable("a table", "it stays in use: try again in a moment") from error


def list_pending_migrations(url: str) -> list[str]:
    """Names what the database lacks: schema files if it is empty, migrations otherwise.

    Writes nothing; any service's role may call it. Raises `Unavailable` if the server cannot be
    reached.
    """
    with _connect(url) as connection:
        if not _can_read(connection, "schema_baseline"):
            return [name for name, _ in _schema_files()]
        return _pending_migrations(connection)


def _schema_files() -> list[tuple[str, str]]:
    """Names and texts of the schema files, in the order in which they are applied."""
    folder = files("reverie.store") / "schema"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")),
                   key=lambda file: file.name)  # fmt: skip
    return [(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in found]


def _list_migrations() -> list[str]:
    folder = files("reverie.store") / "migrations"
    names = (file.name for file in folder.iterdir())
    return sorted(name.removesuffix(".sql") for name in names if name.endswith(".sql"))


def _pending_migrations(connection: _Connection) -> list[str]:
    applied = set()
    if _can_read(connection, "_yoyo_migration"):
        rows = connection.execute(f"select migration_id from {SCHEMA}._yoyo_migration")  # noqa: S608
        applied = {str(row[0]) for row in rows}
    return [name for name in _list_migrations() if name not in applied]


def _state(connection: _Connection) -> str:
    """`empty`, `baseline`, or `unknown` for tables of a schema before the baseline."""
    row = connection.execute(
        "select to_regclass('schema_baseline') is not null,"
        " exists (select from pg_class where relnamespace = %s::regnamespace)",
        (SCHEMA,),
    ).fetchone()
    match row:
        case (True, _):
            return "baseline"
        case (_, True):
            return "unknown"
    return "empty"


def _apply_schema(connection: _Connection, on_progress: MigrationProgress) -> list[str]:
    """Applies the baseline in one transaction."""
    steps = _schema_files()
    with connection.transaction():
        for number, (name, text) in enumerate(steps, start=1):
            on_progress(name, number, len(steps))
            connection.execute(text.encode())
    return [name for name, _ in steps]


def _apply_migrations(url: str, new: bool, on_progress: MigrationProgress) -> list[str]:
    """Applies pending migrations; to a `new` database only marks them as applied."""
    # Here and not above: a start at which nothing is pending does without it.
    from yoyo import get_backend, read_migrations

    with (
        as_file(files("reverie.store") / "migrations") as folder,
        get_backend(_yoyo_url(url)) as backend,
    ):
        # One connection for all migrations: to open one takes as long as most of them.
        backend.copy = partial(nullcontext, backend)
        # The advisory lock of `migrate` is enough; yoyo's own is a row, which may be left behind.
        backend.break_lock()
        pending = backend.to_apply(read_migrations(str(folder)))
        with backend.transaction():
            backend.execute("grant select on _yoyo_migration to public")
        if new:
            backend.mark_migrations(pending)
            return []
        for number, migration in enumerate(pending, start=1):
            on_progress(migration.id, number, len(pending))
            backend.apply_one(migration)
        return [migration.id for migration in pending]


def _can_read(connection: _Connection, table: str) -> bool:
    """Whether a table exists and this role may read it."""
    found = connection.execute(
        "select coalesce(bool_or(has_table_privilege(c.oid, 'select')"
        " and has_schema_privilege(n.oid, 'usage')), false)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relname = %s",
        (SCHEMA, table),
    ).fetchone()
    return found == (True,)


@contextmanager
def _connect(url: str) -> Iterator[_Connection]:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            yield connection
    except (
        psycopg.errors.UndefinedFile,
        psycopg.errors.LockNotAvailable,
        psycopg.errors.DeadlockDetected,
    ):
        raise
    except psycopg.OperationalError as error:
        raise Unavailable("Postgres", "is it running, and is the address right?") from error


def _check_server(connection: _Connection) -> None:
    """Checks the versions, and creates the schema and the extension."""
    version = connection.info.server_version // 10_000
    if version < MIN_POSTGRES:
        raise Misconfigured(
            "database_url", f"Postgres {version} is too old: use {MIN_POSTGRES} or later"
        )
    connection.execute("select pg_advisory_lock(hashtext('reverie.prepare'))")
    try:
        connection.execute(f"create schema if not exists {SCHEMA}")
        connection.execute("create extension if not exists vector with schema public")
    except psycopg.errors.UndefinedFile as error:
        raise Misconfigured("database_url", "the server lacks pgvector: install it") from error
    finally:
        connection.execute("select pg_advisory_unlock(hashtext('reverie.prepare'))")
    found = connection.execute(
        "select extversion from pg_extension where extname = 'vector'"
    ).fetchone()
    installed = str(found[0]) if found else "0"
    if tuple(int(part) for part in installed.split(".")[:2]) < MIN_PGVECTOR:
        raise Misconfigured(
            "database_url",
            f"pgvector {installed} is too old: use 0.8 or later (alter extension vector update)",
        )


def _yoyo_url(url: str) -> str:
    """The address as yoyo reads it: psycopg 3, our schema first, a short lock timeout."""
    parts = urlsplit(url)
    options = "options=" + quote(
        f"-csearch_path={SCHEMA},public -clock_timeout={LOCK_SECONDS * 1000:.0f}"
    )
    query = "&".join(filter(None, (parts.query, options)))
    return urlunsplit(("postgresql+psycopg", parts.netloc, parts.path, query, parts.fragment))

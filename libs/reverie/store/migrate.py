"""Schema migrations: plain SQL files, forward only, run by yoyo under its lock."""

from __future__ import annotations

from importlib.resources import as_file, files
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from yoyo import get_backend, read_migrations

from reverie.domain.errors import Misconfigured, Unavailable

SCHEMA = "reverie"
MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 8)


def migrate(url: str) -> list[str]:
    """Brings the database to the newest schema; safe to run by several at once.

    Returns the names of the migrations applied. Raises `Misconfigured` on a server that is
    too old or lacks pgvector, `Unavailable` where it cannot be reached.
    """
    _prepare(url)
    with (
        as_file(files("reverie.store") / "migrations") as folder,
        get_backend(_yoyo_url(url)) as backend,
    ):
        migrations = read_migrations(str(folder))
        with backend.lock():
            pending = backend.to_apply(migrations)
            backend.apply_migrations(pending)
    return [m.id for m in pending]


def pending_migrations(url: str) -> list[str]:
    """Names of the migrations that the database lacks."""
    with (
        as_file(files("reverie.store") / "migrations") as folder,
        get_backend(_yoyo_url(url)) as backend,
    ):
        return [m.id for m in backend.to_apply(read_migrations(str(folder)))]


def _prepare(url: str) -> None:
    """Checks the server and makes the schema and the extension."""
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
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
    except psycopg.OperationalError as error:
        raise Unavailable("Postgres", "is it running, and is the address right?") from error
    installed = str(found[0]) if found else "0"
    if tuple(int(part) for part in installed.split(".")[:2]) < MIN_PGVECTOR:
        raise Misconfigured(
            "database_url",
            f"pgvector {installed} is too old: use 0.8 or later (alter extension vector update)",
        )


def _yoyo_url(url: str) -> str:
    """The address as yoyo reads it: psycopg 3, and our schema first on the search path."""
    parts = urlsplit(url)
    options = "options=" + quote(f"-csearch_path={SCHEMA},public")
    query = "&".join(filter(None, (parts.query, options)))
    return urlunsplit(("postgresql+psycopg", parts.netloc, parts.path, query, parts.fragment))

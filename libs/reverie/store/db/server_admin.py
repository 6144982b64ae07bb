"""Administers a Postgres server: inspects it, creates databases and login roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from reverie.domain.core.errors import Unavailable
from reverie.store.db.roles import APP_ROLE, READ_ROLE

CONNECT_SECONDS = 5


@dataclass(frozen=True)
class ServerFacts:
    """A server as seen by the role of a URL. `pgvector` is the version that can be had.

    `read_only`: the role is a member of `reverie_read` and of no role that writes.
    """

    version: int
    pgvector: str | None
    role: str
    bypasses_rls: bool
    owns_schema: bool
    read_only: bool


def is_reachable(url: str) -> bool:
    """Whether the server accepts this URL's user and password, and a query."""
    try:
        with _connect(url) as db:
            return db.execute("select 1").fetchone() == (1,)
    except Unavailable:
        return False


def load_server_facts(url: str) -> ServerFacts:
    """The server's version (major), pgvector and the URL's role. Raises `Unavailable`."""
    with _connect(url) as db:
        found = db.execute(
            "select current_user, rolsuper or rolbypassrls, (select coalesce(installed_version,"
            " default_version) from pg_available_extensions where name = 'vector'),"
            " exists (select from pg_namespace where nspname = 'reverie'"
            "         and pg_has_role(nspowner, 'member')),"
            " (select array_agg(rolname::text) from pg_roles m where pg_has_role(m.oid, 'member'))"
            " from pg_roles where rolname = current_user"
        ).fetchone()
        role, bypasses, pgvector, owns, memberships = found or ("", False, None, False, [])
        reads = READ_ROLE in memberships and APP_ROLE not in memberships
        version = db.info.server_version // 10_000
        return ServerFacts(version, pgvector, role, bypasses, owns, reads)


def ensure_database(url: str, name: str) -> None:
    """Creates a database if it is missing. Raises `Unavailable`."""
    with _connect(url) as db:
        existing = db.execute("select from pg_database where datname = %s", [name]).fetchone()
        if existing is None:
            db.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


class DatabaseCopier:
    """Copies and drops databases through one connection, which opens with the first of them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def copy(self, name: str, template: str) -> None:
        """Make a database as a copy of another that nobody is connected to."""
        statement = sql.SQL("create database {} template {} strategy file_copy")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def drop(self, name: str) -> None:
        """Drop a database if it is there; sessions on it are cut."""
        statement = sql.SQL("drop database if exists {} with (force)")
        self._execute(statement.format(sql.Identifier(name)))

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None:
            self._connection.close()

    def _execute(self, statement: sql.Composed) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = _open(self._url)
        self._connection.execute(statement)


def ensure_login(url: str, role: str, password: str, group: str) -> None:
    """Makes `role` a member of `group` that logs in and is subject to row-level security.

    A read-only one has no write privilege and starts each transaction as read-only.
    """
    rights = sql.SQL("{} role {} login nosuperuser nobypassrls nocreatedb nocreaterole password {}")
    with _connect(url) as db:
        exists = (
            db.execute("select from pg_roles where rolname = %s", [role]).fetchone() is not None
        )
        verb = sql.SQL("alter" if exists else "create")
        name = sql.Identifier(role)
        # Hashed on the client, so that no log of the server can contain the password.
        secret = db.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
        db.execute(rights.format(verb, name, sql.Literal(secret.decode())))
        db.execute(sql.SQL("grant {} to {}").format(sql.Identifier(group), name))
        if group == READ_ROLE:
            db.execute(sql.SQL("alter role {} set default_transaction_read_only = on").format(name))


def _open(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.OperationalError as error:
        message = (str(error).strip().splitlines() or ["no answer"])[-1]
        raise Unavailable("Postgres", message) from None


@contextmanager
def _connect(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with closing(_open(url)) as connection:
        yield connection

"""What stands in the database, counted past every policy: for tests of what was stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from reverie.store.migrate import SCHEMA

# Ranks follow the edges in their own time, whatever a test does.
TABLES: LiteralString = """
select relname from pg_class
where relnamespace = %s::regnamespace and relkind in ('r', 'p') and not relispartition
  and relname not like '%%yoyo%%' and relname not in ('edge_change', 'memory_rank')
"""
BUSY: LiteralString = """
select (select count(*) from outbox)
     + (select count(*) from dream_job where parked is null)
     + (select count(*) from memory where enriched_version < version)
     + (select count(*) from git_event where processed is null)
"""


def rows(admin_url: str, query: LiteralString, *args: object) -> list[tuple[Any, ...]]:
    """The rows of a statement, as a superuser sees them: of every tenant."""
    with _connect(admin_url) as connection:
        return connection.execute(query, args).fetchall()


def value(admin_url: str, query: LiteralString, *args: object) -> Any:
    """The first column of the first row."""
    return rows(admin_url, query, *args)[0][0]


@contextmanager
def holding(admin_url: str, *statements: LiteralString) -> Iterator[None]:
    """Holds the locks that the statements take; nothing of them is kept."""
    connection = _connect(admin_url)
    try:
        for statement in statements:
            connection.execute(statement)
        yield
    finally:
        connection.rollback()
        connection.close()


async def blocked(admin_url: str) -> bool:
    """Whether some statement waits for a lock."""
    query: LiteralString = (
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(value(admin_url, query))


def run(admin_url: str, statement: LiteralString, *args: object) -> None:
    """Changes what stands, past every policy."""
    with _connect(admin_url) as connection:
        connection.execute(statement, args)


class Tables:
    """Counts the rows of all tables, again and again over one connection; close it.

    With a tenant only its own rows are counted, which is five times as fast.
    """

    def __init__(self, admin_url: str, tenant: int | None = None) -> None:
        self._connection = _connect(admin_url)
        self._connection.autocommit = True
        names = [name for (name,) in self._connection.execute(TABLES, (SCHEMA,)).fetchall()]
        self._query = sql.SQL(" union all ").join(
            sql.SQL("select {}, count(*) from {} {}").format(
                name, sql.Identifier(SCHEMA, name), _of(name, tenant)
            )
            for name in names
        )

    def counts(self) -> dict[str, int]:
        """How many rows each table holds."""
        return dict(self._connection.execute(self._query).fetchall())

    def idle(self) -> bool:
        """Whether nothing waits for the bus, the slow path, a dream or the staleness service."""
        return self._connection.execute(BUSY).fetchall() == [(0,)]

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def _of(table: str, tenant: int | None) -> sql.Composable:
    column = "id" if table == "tenant" else "tenant"
    return (
        sql.SQL("where {} = {}").format(sql.Identifier(column), tenant) if tenant else sql.SQL("")
    )


def counts(admin_url: str) -> dict[str, int]:
    """How many rows each table holds."""
    tables = Tables(admin_url)
    try:
        return tables.counts()
    finally:
        tables.close()


def _connect(admin_url: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(admin_url, options=f"-csearch_path={SCHEMA},public")

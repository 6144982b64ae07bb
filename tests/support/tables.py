"""Reads and counts database rows as an administrator, past row-level security."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, LiteralString, TypeAlias

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.rows import dict_row, tuple_row

from reverie.store.db.roles import SCHEMA
from reverie.store.platform.api_keys import connect_as_owner

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# Ranks follow the edges in their own time, whatever a test does; retired keys are of no tenant;
# what tells gateways of changes stays for two hours, also of what is gone.
TABLES: LiteralString = """
select relname from pg_class
where relnamespace = %s::regnamespace and relkind in ('r', 'p') and not relispartition
  and relname not like '%%yoyo%%' and relname not in (
    'edge_change', 'memory_change', 'memory_rank', 'retired_key')
"""
FILLED: LiteralString = """
select c.relname, coalesce(p.relname, c.relname) from pg_class c
left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
where c.relnamespace = %s::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0
"""
"""Tables that have pages, with the parent of each partition; most partitions are empty."""
BUSY: LiteralString = """
select count(*) from (
  select tenant from outbox
  union all select tenant from dream_job where parked is null
  union all select tenant from memory where enriched_version < version
  union all select tenant from git_event where processed is null
) busy where %s::int is null or tenant = %s
"""


KEPT_CONNECTIONS = 3
_cached: dict[str, Connection] = {}
"""The connections that the main thread used last: connecting takes longer than a query."""


def asked(admin_url: str, query: bytes, args: Sequence[object]) -> list[tuple[Any, ...]]:
    """Runs one statement as superuser in a transaction of its own; returns its rows."""
    if threading.current_thread() is not threading.main_thread():
        # Another thread may wait for a lock: it gets a connection of its own.
        with _connect(admin_url) as connection:
            return _answer(connection, query, args)
    try:
        return _answer(_connected(admin_url), query, args)
    except psycopg.OperationalError:
        if not _cached[admin_url].broken:
            raise
        # The server was restarted since.
        return _answer(_connected(admin_url), query, args)


@contextmanager
def owned(admin_url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A transaction as `api_keys.connect_as_owner` opens it, on the connection of `asked`."""
    if threading.current_thread() is not threading.main_thread():
        with connect_as_owner(admin_url) as own:
            yield own
        return
    asked(admin_url, b"select", ())
    connection: Any = _connected(admin_url)
    connection.row_factory = dict_row
    try:
        with connection.transaction():
            yield connection
    finally:
        connection.row_factory = tuple_row


def _answer(connection: Connection, query: bytes, args: Sequence[object]) -> list[tuple[Any, ...]]:
    cursor = connection.execute(query, args)
    # A statement may answer rows without columns, whose description is empty too.
    has_rows = cursor.pgresult is not None and cursor.pgresult.status == ExecStatus.TUPLES_OK
    return cursor.fetchall() if has_rows else []


def _connected(admin_url: str) -> Connection:
    """The cached connection, as the one used last; a new one takes the place of the oldest."""
    found = _cached.pop(admin_url, None)
    if found is None or found.closed:
        close_cached_connections(KEPT_CONNECTIONS - 1)
        found = _connect(admin_url)
        found.autocommit = True
    _cached[admin_url] = found
    return found


def close_cached_connections(kept: int = 0) -> None:
    """Closes all of them but those used last."""
    while len(_cached) > kept:
        _cached.pop(next(iter(_cached))).close()


def rows(admin_url: str, query: LiteralString, *args: object) -> list[tuple[Any, ...]]:
    """The rows of a statement, as a superuser sees them: of every tenant."""
    return asked(admin_url, query.encode(), args)


def value(admin_url: str, query: LiteralString, *args: object) -> Any:
    """The first column of the first row."""
    return rows(admin_url, query, *args)[0][0]


def tell_of(admin_url: str, memory: str, sentence: str) -> None:
    """A sentence on the memory's scope, as if a dream had asked a language model for it."""
    told = (
        "with told as (select tenant, scope, jsonb_build_array(jsonb_build_object('text', %s::text,"
        " 'memories', jsonb_build_object(id, version))) as content"
        " from memory where id = %s::uuid),"
        " head as (insert into summary (tenant, scope, content, tokens)"
        " select tenant, scope, '', 1 from told on conflict do nothing)"
        " insert into summary_narrative (tenant, scope, content, shown, seen)"
        " select tenant, scope, content, '{}', now() from told returning 1"
    )
    assert rows(admin_url, told, sentence, memory)


@contextmanager
def holding(admin_url: str, *statements: LiteralString) -> Iterator[None]:
    """Holds the locks that the statements take, and rolls back afterwards."""
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
    """Runs a statement as superuser, past every policy."""
    asked(admin_url, statement.encode(), args)


class Tables:
    """Counts the rows of all tables repeatedly over one connection; close it.

    With a tenant only its own rows are counted.
    """

    def __init__(self, admin_url: str, tenant: int | None = None) -> None:
        self._connection = _connect(admin_url)
        self._connection.autocommit = True
        self._tenant = tenant
        self._names = [name for (name,) in self._connection.execute(TABLES, (SCHEMA,)).fetchall()]

    def counts(self) -> dict[str, int]:
        """How many rows each table holds."""
        found = dict.fromkeys(self._names, 0)
        filled = self._connection.execute(FILLED, (SCHEMA,)).fetchall()
        parts = [(part, table) for part, table in filled if table in found]
        query = sql.SQL(" union all ").join(
            sql.SQL("select {}, count(*) from {} {}").format(
                table, sql.Identifier(SCHEMA, part), _of(table, self._tenant)
            )
            for part, table in parts
        )
        for table, many in self._connection.execute(query).fetchall():
            found[table] += many
        return found

    def idle(self) -> bool:
        """Whether nothing waits for the bus, the slow path, a dream or the staleness service."""
        of = (self._tenant, self._tenant)
        return self._connection.execute(BUSY, of).fetchall() == [(0,)]

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def _of(table: str, tenant: int | None) -> sql.Composable:
    column = "id" if table == "tenant" else "tenant"
    return (
        sql.SQL("where {} = {}").format(sql.Identifier(column), tenant) if tenant else sql.SQL("")
    )


def idle(admin_url: str, tenant: int | None = None) -> bool:
    """Whether nothing waits, as `Tables.idle`."""
    return bool(value(admin_url, BUSY, tenant, tenant) == 0)


def counts(admin_url: str, tenant: int | None = None) -> dict[str, int]:
    """How many rows each table holds, or how many of them are a tenant's."""
    with closing(Tables(admin_url, tenant)) as tables:
        return tables.counts()


def _connect(admin_url: str) -> Connection:
    return psycopg.connect(admin_url, options=f"-csearch_path={SCHEMA},public")

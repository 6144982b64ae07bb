"""Opens tenant-scoped transactions and reads, protected by row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any

import asyncpg
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from prometheus_client import CollectorRegistry

from reverie.domain.core.errors import Unauthenticated, Unavailable
from reverie.store.db.connection_pool import Connection, ConnectionPool, PoolMetrics
from reverie.store.db.connections import (
    OUTAGE_ERRORS,
    ReaderConnection,
    build_local_enter_sql,
    build_schema_missing_error,
    open_pool,
)
from reverie.store.db.queries import get_sql
from reverie.store.db.replica import ReadReplica, ReplicaOptions

_tracer = trace.get_tracer("reverie.store")

_ASYNC_COMMIT = "set local synchronous_commit = off"
_BEGIN_SNAPSHOT = "begin isolation level repeatable read, read only"
_OWN_PLANS = "set local plan_cache_mode = force_custom_plan"

ACQUIRE_TIMEOUT = 5.0
DEFAULT_VECTOR_TABLE = "vec_bge_small_en_v1_5"

MAIN, READERS, REPLICA = "main", "readers", "replica"
"""The names of the pools."""


class TenantConnection:
    """A transaction that sees one tenant's rows. Rows are returned as mappings.

    `vector_table`: the table that replaces that of the first model in the queries.
    """

    def __init__(self, connection: Connection, tenant: int) -> None:
        self._connection = connection
        self.id = tenant
        self.vector_table = DEFAULT_VECTOR_TABLE

    async def fetch_rows(self, name: str, *args: object) -> list[asyncpg.Record]:
        """All rows of a statement or function; `$1` is the tenant, `args` follow."""
        sql = self._sql(name, 1 + len(args))
        with _span(name):
            return await self._connection.fetch(sql, self.id, *args)

    async def fetch_row(self, name: str, *args: object) -> asyncpg.Record | None:
        """The first row of a query, if any."""
        sql = self._sql(name, 1 + len(args))
        with _span(name):
            return await self._connection.fetchrow(sql, self.id, *args)

    async def fetch_value(self, name: str, *args: object) -> Any:
        """The first column of the first row."""
        sql = self._sql(name, 1 + len(args))
        with _span(name):
            return await self._connection.fetchval(sql, self.id, *args)

    async def execute_many(self, name: str, args: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each of the argument lists."""
        with _span(name):
            await self._connection.executemany(
                self._sql(name), [(self.id, *values) for values in args]
            )

    def _sql(self, name: str, arg_count: int = 0) -> str:
        sql = get_sql(name, arg_count)
        return (
            sql
            if self.vector_table == DEFAULT_VECTOR_TABLE
            else sql.replace(DEFAULT_VECTOR_TABLE, self.vector_table)
        )

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """Opens a savepoint: a failure inside is rolled back, and the transaction goes on."""
        await self._connection.execute("savepoint attempt")
        try:
            yield
        except BaseException:
            if not self._connection.is_closed():
                await self._connection.execute("rollback to attempt")
            raise
        await self._connection.execute("release attempt")


async def update_setting(
    connection: TenantConnection, project: str, name: str, changes: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Changes some settings of a project (`*`: the tenant) under a name; None resets one or all.

    Returns all current settings. Calls for one tenant are serialised.
    """
    await connection.fetch_rows("settings_lock")
    if changes is None:
        await connection.fetch_rows("setting_reset", project, name)
        return {}
    stored = await connection.fetch_value("setting_get", project, name) or {}
    values = {key: value for key, value in {**stored, **changes}.items() if value is not None}
    await connection.fetch_rows("setting_put", project, name, values)
    return values


class Database:
    """A connection pool under the role that row-level security restricts."""

    def __init__(
        self,
        main_pool: ConnectionPool,
        reader_pool: ConnectionPool | None = None,
        replica: ReadReplica | None = None,
    ) -> None:
        self._main_pool, self._reader_pool, self.replica = main_pool, reader_pool, replica

    @asynccontextmanager
    async def tenant_transaction(
        self, tenant: int, durable: bool = True
    ) -> AsyncIterator[TenantConnection]:
        """A transaction in which only this tenant's rows can be seen.

        Not `durable`, its commit does not wait for the disk: for what would be made again if the
        server died within the next second.
        """
        begin = f"begin; set local reverie.tenant = '{int(tenant)}'"
        async with self._acquire() as connection:
            await connection.execute(begin if durable else f"{begin}; {_ASYNC_COMMIT}")
            try:
                yield TenantConnection(connection, tenant)
            except BaseException:
                await _roll_back(connection)
                raise
            await connection.execute("commit")

    @asynccontextmanager
    async def tenant_reader(self, tenant: int) -> AsyncIterator[TenantConnection]:
        """One tenant's rows, each statement by itself; nothing can be written.

        The connections of the readers keep the tenant that they saw last, which spares the
        messages around a transaction, and their plans. Without readers it is one.
        """
        if self._reader_pool is None:
            async with self.tenant_transaction(tenant) as tenant_connection:
                yield tenant_connection
            return
        if self.replica is None:
            async with self._acquire(self._reader_pool) as connection:
                await connection.enter(tenant)  # type: ignore[attr-defined]
                yield TenantConnection(connection, tenant)
            return
        async with AsyncExitStack() as stack:
            yield TenantConnection(await self._reader_connection(stack, tenant), tenant)

    async def _reader_connection(self, stack: AsyncExitStack, tenant: int) -> Connection:
        def enter(connection: Connection) -> Awaitable[None]:
            return connection.enter(tenant)  # type: ignore[attr-defined,no-any-return]

        acquired = await self._replica_connection(stack, enter)
        if acquired is None:
            acquired = await stack.enter_async_context(self._acquire(self._reader_pool))
            await enter(acquired)
        return acquired

    async def _replica_connection(
        self, stack: AsyncExitStack, prepare: Callable[[Connection], Awaitable[object]]
    ) -> Connection | None:
        """A prepared connection to the replica; None if the replica lags too far behind."""
        if self.replica is None or not await self.replica.is_usable():
            return None
        with suppress(Unavailable, *OUTAGE_ERRORS):
            connection = await stack.enter_async_context(self._acquire(self.replica.pool))
            await prepare(connection)
            return connection
        self.replica.mark_failed()
        return None

    @asynccontextmanager
    async def snapshot(
        self, tenant: int, own_plans: bool = False
    ) -> AsyncIterator[TenantConnection]:
        """One tenant's rows as they were at one moment; nothing can be written.

        `own_plans`: statements are planned for this tenant, not for all, because their best plan
        depends on its size. A replica may have it.
        """
        begin = f"{_BEGIN_SNAPSHOT}; {_OWN_PLANS}" if own_plans else _BEGIN_SNAPSHOT
        async with self._read_only_transaction(tenant, begin) as connection:
            yield connection

    async def get_log_position(self) -> str:
        """Returns the current end of the log. A read that names it sees all writes committed so
        far."""
        found: str = await self.call("log_position")
        return found

    async def get_tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None if there is no tenant with that number."""
        async with self.tenant_transaction(tenant) as connection:
            found: str | None = await connection.fetch_value("tenant_name")
        return found

    @asynccontextmanager
    async def export_snapshot(self, tenant: int) -> AsyncIterator[TenantConnection]:
        """The same, times in UTC."""
        begin = f"{_BEGIN_SNAPSHOT}; set local timezone = 'UTC'"
        async with self._read_only_transaction(tenant, begin) as connection:
            yield connection

    @asynccontextmanager
    async def _read_only_transaction(
        self, tenant: int, begin: str
    ) -> AsyncIterator[TenantConnection]:
        """A transaction that writes nothing, and is therefore never committed."""

        def first(connection: Connection) -> Awaitable[object]:
            return connection.execute(f"{begin}; {build_local_enter_sql(tenant)}")

        async with AsyncExitStack() as stack:
            connection = await self._replica_connection(stack, first)
            is_open = connection is not None
            if connection is None:
                connection = await stack.enter_async_context(self._acquire(self._reader_pool))
            try:
                if not is_open:
                    await first(connection)
                yield TenantConnection(connection, tenant)
            finally:
                await _roll_back(connection)

    async def call(self, name: str, *args: object) -> Any:
        """The first value of one statement by itself: functions that set their own tenant."""
        async with self._acquire() as connection:
            with _span(name):
                return await connection.fetchval(get_sql(name, len(args)), *args)

    async def fetch_rows(self, name: str, *args: object) -> list[asyncpg.Record]:
        """The rows of one statement by itself: the functions that cross tenants."""
        async with self._acquire() as connection:
            with _span(name):
                return await connection.fetch(get_sql(name, len(args)), *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A plain transaction, for the outbox relay."""
        async with self._acquire() as connection, connection.transaction():
            yield connection

    async def check(self) -> None:
        """Raises `Unavailable` if Postgres does not respond, `Misconfigured` without a schema."""
        if not await self.call("schema_exists"):
            raise build_schema_missing_error()

    @asynccontextmanager
    async def _acquire(self, pool: ConnectionPool | None = None) -> AsyncIterator[Connection]:
        try:
            async with (pool or self._main_pool).acquire() as connection:
                yield connection
        except asyncpg.InsufficientPrivilegeError as error:
            if 'policy "tenant_exists"' in str(error):
                raise Unauthenticated from error
            raise
        except asyncpg.DiskFullError as error:
            raise Unavailable("Postgres", "its disk is full") from error
        except OUTAGE_ERRORS as error:
            raise Unavailable("Postgres", "try again shortly") from error


@asynccontextmanager
async def open_database(
    url: str,
    size: int = 8,
    reader_size: int = 0,
    registry: CollectorRegistry | None = None,
    replica: ReplicaOptions | None = None,
    reader_url: str | None = None,
    tenant_memories: int = 0,
) -> AsyncIterator[Database]:
    """Opens a warm pool of at most `size` connections, one of `reader_size`, and one on a replica.

    `reader_url`: the same database with a read-only user, for `reader_size`; unset: `url`.
    `tenant_memories`: the most active memories of a tenant; 0 is no limit.
    `registry` receives their metrics. Raises `Misconfigured` or `Unavailable`.
    """
    write_limits = {"reverie.tenant_memories": str(tenant_memories)} if tenant_memories else {}
    metrics = PoolMetrics(registry or CollectorRegistry())

    async def opened(
        name: str, pool: AbstractAsyncContextManager[asyncpg.Pool[asyncpg.Record]]
    ) -> ConnectionPool:
        connection_pool = ConnectionPool(
            name, await stack.enter_async_context(pool), ACQUIRE_TIMEOUT, metrics
        )
        stack.push_async_callback(connection_pool.close)
        return connection_pool

    async with AsyncExitStack() as stack:
        main_pool = await opened(MAIN, open_pool(url, size, server_settings=write_limits))
        reader_pool = read_replica = None
        if reader_size:
            reader_source = (
                (reader_url, "database_readonly_url") if reader_url else (url, "database_url")
            )
            reader_pool = await opened(
                READERS,
                open_pool(reader_source[0], reader_size, ReaderConnection, reader_source[1]),
            )
        if replica:
            # It need not be there: nothing is opened before the first read.
            source = replica.url, reader_size, ReaderConnection, "database_replica_url"
            pool = open_pool(*source, connect_now=False)
            read_replica = ReadReplica(await opened(REPLICA, pool), replica)
        yield Database(main_pool, reader_pool, read_replica)


async def _roll_back(connection: Connection) -> None:
    """A broken connection has rolled back already; the pool drops it."""
    if not connection.is_closed():
        await connection.execute("rollback")


@contextmanager
def _span(name: str) -> Iterator[None]:
    """Opens a statement's span.

    A failure records only its class, because the text may quote stored content. There is no span in
    a request whose spans are not recorded.
    """
    parent = trace.get_current_span()
    if parent.get_span_context().is_valid and not parent.is_recording():
        yield
        return
    with _tracer.start_as_current_span(
        f"sql {name}",
        kind=SpanKind.CLIENT,
        attributes={"db.system.name": "postgresql", "db.query.summary": name},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise

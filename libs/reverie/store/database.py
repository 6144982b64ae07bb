"""The connection pool, and the one way to reach a tenant's rows."""

from __future__ import annotations

import json
from asyncio import timeout as asyncio_timeout
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import asyncpg
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from pgvector.asyncpg import register_vector
from prometheus_client import CollectorRegistry

from reverie.domain.errors import Misconfigured, Unauthenticated, Unavailable
from reverie.store.migrate import SCHEMA
from reverie.store.pool_meters import PoolMeters
from reverie.store.queries import query, settled
from reverie.store.steady import PLANS_KEPT_SECONDS, Steady

_tracer = trace.get_tracer("reverie.store")

# A plan for any tenant reads every partition, and one tenant's plan is not another's: one is made
# for each call, and kept only where the tenant is written into the statement.
_SERVER_SETTINGS = {
    "role": "reverie_app",
    "search_path": f"{SCHEMA},public",
    "plan_cache_mode": "force_custom_plan",
    "application_name": "reverie",
    "jit": "off",
    # A filtered HNSW scan goes on until it has enough rows.
    "hnsw.iterative_scan": "relaxed_order",
}
_OUTAGES = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
)


_UNFLUSHED = "set local synchronous_commit = off"

FIRST_VECTORS = "vec_bge_small_en_v1_5"

MAIN, READERS = "main", "readers"
"""The names of the pools."""


class Tenant:
    """A transaction that sees one tenant's rows. Rows come as mappings.

    `vectors`: the table that stands for that of the first model in the queries. `settled`: plans
    are kept, so whole numbers are written into the statements.
    """

    def __init__(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        tenant: int,
        settled: bool = False,
    ) -> None:
        self._connection = connection
        self._settled = settled
        self.id = tenant
        self.vectors = FIRST_VECTORS

    async def rows(self, name: str, *args: object) -> list[asyncpg.Record]:
        """All rows of a query; `$1` is the tenant, `args` follow."""
        sql, given = self._asked(name, args)
        with _span(name):
            return await self._connection.fetch(sql, *given)

    async def row(self, name: str, *args: object) -> asyncpg.Record | None:
        """The first row of a query, if any."""
        sql, given = self._asked(name, args)
        with _span(name):
            return await self._connection.fetchrow(sql, *given)

    async def value(self, name: str, *args: object) -> Any:
        """The first column of the first row."""
        sql, given = self._asked(name, args)
        with _span(name):
            return await self._connection.fetchval(sql, *given)

    async def many(self, name: str, args: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each of the argument lists."""
        with _span(name):
            await self._connection.executemany(self._sql(name), [(self.id, *one) for one in args])

    def _asked(self, name: str, args: Sequence[object]) -> tuple[str, Sequence[object]]:
        sql, given = self._sql(name), (self.id, *args)
        return settled(sql, given) if self._settled else (sql, given)

    def _sql(self, name: str) -> str:
        sql = query(name).sql
        return sql if self.vectors == FIRST_VECTORS else sql.replace(FIRST_VECTORS, self.vectors)

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """What fails inside is undone by itself; the transaction goes on."""
        await self._connection.execute("savepoint attempt")
        try:
            yield
        except BaseException:
            if not self._connection.is_closed():
                await self._connection.execute("rollback to attempt")
            raise
        await self._connection.execute("release attempt")


class Database:
    """A pool under the role that row-level security holds."""

    def __init__(
        self,
        pool: asyncpg.Pool[asyncpg.Record],
        acquire_timeout: float,
        readers: asyncpg.Pool[asyncpg.Record] | None = None,
        meters: PoolMeters | None = None,
    ) -> None:
        self._pool = pool
        self._timeout = acquire_timeout
        self._readers = readers
        self._meters = meters or PoolMeters(CollectorRegistry())
        self._meters.watch(MAIN, pool)
        if readers is not None:
            self._meters.watch(READERS, readers)
        self._steady = Steady()

    @asynccontextmanager
    async def tenant(self, tenant: int, flushed: bool = True) -> AsyncIterator[Tenant]:
        """A transaction in which only this tenant's rows can be seen.

        Not `flushed`, its commit does not wait for the disk: for what would be made again if the
        server died within the next second.
        """
        begin = f"begin; set local reverie.tenant = '{int(tenant)}'"
        async with self._connection() as connection:
            await connection.execute(begin if flushed else f"{begin}; {_UNFLUSHED}")
            try:
                yield Tenant(connection, tenant)
            except BaseException:
                await _roll_back(connection)
                raise
            await connection.execute("commit")

    @asynccontextmanager
    async def reading(self, tenant: int) -> AsyncIterator[Tenant]:
        """One tenant's rows, each statement by itself; nothing can be written.

        The connections of the readers keep the tenant that they saw last, which spares the
        messages around a transaction, and the plans of one that asks a lot. Without readers it is
        one.
        """
        if self._readers is None:
            async with self.tenant(tenant) as one:
                yield one
            return
        async with self._connection(self._readers) as connection:
            steady = self._steady.asks(tenant)
            await connection.enter(tenant, steady)  # type: ignore[attr-defined]
            yield Tenant(connection, tenant, steady)

    def keeps_plans_for(self, tenant: int) -> bool:
        """Whether that tenant asks so much that its plans are kept."""
        return self._readers is not None and self._steady.is_one(tenant)

    async def name_of(self, tenant: int) -> str | None:
        """The name of a tenant; None where there is none of that number."""
        async with self.tenant(tenant) as one:
            found: str | None = await one.value("tenant_name")
        return found

    @asynccontextmanager
    async def snapshot(self, tenant: int) -> AsyncIterator[Tenant]:
        """One tenant's rows as they were at one moment, times in UTC; nothing can be written."""
        async with self._connection() as connection:
            await connection.execute(
                "begin isolation level repeatable read, read only;"
                f" set local reverie.tenant = '{int(tenant)}'; set local timezone = 'UTC'"
            )
            try:
                yield Tenant(connection, tenant)
            finally:
                await _roll_back(connection)

    async def call(self, name: str, *args: object) -> Any:
        """The first value of one statement by itself: functions that set their own tenant."""
        async with self._connection() as connection:
            with _span(name):
                return await connection.fetchval(query(name).sql, *args)

    async def rows(self, name: str, *args: object) -> list[asyncpg.Record]:
        """The rows of one statement by itself: the functions that cross tenants."""
        async with self._connection() as connection:
            with _span(name):
                return await connection.fetch(query(name).sql, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """A plain transaction, for the outbox relay."""
        async with self._connection() as connection, connection.transaction():
            yield connection

    async def check(self) -> None:
        """Raises `Unavailable` where Postgres does not answer, `Misconfigured` without a schema."""
        if not await self.call("schema_stands"):
            raise _unmigrated()

    @asynccontextmanager
    async def _connection(
        self, pool: asyncpg.Pool[asyncpg.Record] | None = None
    ) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        name, meters = READERS if pool else MAIN, self._meters
        try:
            with meters.waiting(name) as begun:
                lent = await (pool or self._pool).acquire(timeout=self._timeout)
            since = meters.free(name, begun)
            try:
                yield lent  # type: ignore[misc]
            finally:
                await (pool or self._pool).release(lent)
                meters.given_back(name, since)
        except asyncpg.InsufficientPrivilegeError as error:
            if 'policy "stands"' in str(error):
                raise Unauthenticated from error
            raise
        except _OUTAGES as error:
            raise Unavailable("Postgres", "try again shortly") from error


@asynccontextmanager
async def open_database(
    url: str,
    size: int = 8,
    acquire_timeout: float = 5.0,
    min_size: int = 1,
    readers: int = 0,
    registry: CollectorRegistry | None = None,
) -> AsyncIterator[Database]:
    """A warm pool of at most `size` connections, and one of `readers` beside it.

    `registry` takes what is counted of them. Raises `Misconfigured` or `Unavailable`.
    """
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(_pool(url, size, min_size))
        reading = None
        if readers:
            reading = await stack.enter_async_context(_pool(url, readers, min_size, _Reader))
        meters = PoolMeters(registry) if registry else None
        yield Database(pool, acquire_timeout, reading, meters)


def entering(tenant: int, steady: bool) -> str:
    """What a reader says to see a tenant's rows from now on, and to keep the plans of a steady one.

    A plan that is kept must not read from end to end what was small when it was made.
    """
    plans, whole = ("generic", "off") if steady else ("custom", "on")
    return (
        f"set default_transaction_read_only = on; set reverie.tenant = '{int(tenant)}';"
        f" set plan_cache_mode = force_{plans}_plan; set enable_seqscan = {whole}"
    )


class _Reader(asyncpg.Connection):
    """A connection that only reads, and stays with the tenant it read last."""

    __slots__ = ("_entered",)

    async def enter(self, tenant: int, steady: bool) -> None:
        """From now on this tenant's rows are seen; the plans for a `steady` one are kept."""
        if getattr(self, "_entered", None) != (tenant, steady):
            self._entered = None
            await self.execute(entering(tenant, steady))
            self._entered = (tenant, steady)


@asynccontextmanager
async def _pool(
    url: str,
    size: int,
    min_size: int,
    kind: type[asyncpg.Connection[asyncpg.Record]] = asyncpg.Connection,
) -> AsyncIterator[asyncpg.Pool[asyncpg.Record]]:
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=min(min_size, size),
            max_size=size,
            connection_class=kind,
            init=_prepare,
            reset=_reset,
            server_settings=_SERVER_SETTINGS,
            command_timeout=60,
            timeout=10,
            max_cached_statement_lifetime=PLANS_KEPT_SECONDS if kind is _Reader else 300,
        )
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise Misconfigured("database_url", "Postgres refuses this user or password") from error
    except asyncpg.InvalidCatalogNameError as error:
        raise Misconfigured("database_url", "there is no such database: create it") from error
    except (asyncpg.InvalidParameterValueError, asyncpg.InsufficientPrivilegeError) as error:
        raise Misconfigured(
            "database_url", "the role reverie_app is missing: run `reverie migrate`"
        ) from error
    except _OUTAGES as error:
        raise Unavailable("Postgres", "is it running, and is database_url right?") from error
    try:
        yield pool
    finally:
        await _close(pool)


async def _prepare(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    try:
        await register_vector(connection, schema="public")
    except ValueError as error:  # no such type
        raise _unmigrated() from error
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )


def _unmigrated() -> Misconfigured:
    return Misconfigured("database_url", "the database has no schema yet: run `reverie migrate`")


async def _reset(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """All settings are local to a transaction, so an open one is all there is to clear."""
    if connection.is_in_transaction():
        await connection.execute("rollback")


async def _close(pool: asyncpg.Pool[asyncpg.Record]) -> None:
    """Waits for running statements a little, then cuts."""
    try:
        async with asyncio_timeout(3):
            await pool.close()
    except TimeoutError:
        pool.terminate()


async def _roll_back(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """A broken connection has rolled back already; the pool drops it."""
    if not connection.is_closed():
        await connection.execute("rollback")


@contextmanager
def _span(name: str) -> Iterator[None]:
    """A statement's span. Of a failure it tells the class: the text may quote what was written.

    There is none in a request that nobody keeps the spans of.
    """
    around = trace.get_current_span()
    if around.get_span_context().is_valid and not around.is_recording():
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

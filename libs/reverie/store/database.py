"""The connection pool, and the one way to reach a tenant's rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
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

from reverie.domain.errors import Unauthenticated, Unavailable
from reverie.store.hand import Connection, Hand
from reverie.store.pool_meters import PoolMeters
from reverie.store.pools import OUTAGES, Reader, open_pool, unmigrated, visiting
from reverie.store.queries import query, settled
from reverie.store.replica import Replica, ReplicaSpec
from reverie.store.steady import Steady

_tracer = trace.get_tracer("reverie.store")

_UNFLUSHED = "set local synchronous_commit = off"
_AS_OF_ONE_MOMENT = "begin isolation level repeatable read, read only"

FIRST_VECTORS = "vec_bge_small_en_v1_5"

MAIN, READERS, REPLICA = "main", "readers", "replica"
"""The names of the pools."""


class Tenant:
    """A transaction that sees one tenant's rows. Rows come as mappings.

    `vectors`: the table that stands for that of the first model in the queries. `settled`: plans
    are kept, so limits are written into the statements. `own_plans`: the tenant too, for statements
    whose best plan hangs on how much it has.
    """

    def __init__(
        self,
        connection: Connection,
        tenant: int,
        settled: bool = False,
    ) -> None:
        self._connection = connection
        self._settled = settled
        self.id = tenant
        self.vectors = FIRST_VECTORS
        self.own_plans = False

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
        return settled(sql, given, self.own_plans) if self._settled else (sql, given)

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
        self, main: Hand, readers: Hand | None = None, replica: Replica | None = None
    ) -> None:
        self._main, self._readers, self.replica = main, readers, replica
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
        messages around a transaction, and their plans. Without readers it is one.
        """
        if self._readers is None:
            async with self.tenant(tenant) as one:
                yield one
            return
        self._steady.asks(tenant)
        if self.replica is None:
            async with self._connection(self._readers) as connection:
                await connection.enter(tenant)  # type: ignore[attr-defined]
                yield Tenant(connection, tenant, settled=True)
            return
        async with AsyncExitStack() as stack:
            yield Tenant(await self._entered(stack, tenant), tenant, settled=True)

    async def _entered(self, stack: AsyncExitStack, tenant: int) -> Connection:
        def enter(connection: Connection) -> Awaitable[None]:
            return connection.enter(tenant)  # type: ignore[attr-defined,no-any-return]

        found = await self._of_replica(stack, enter)
        if found is None:
            found = await stack.enter_async_context(self._connection(self._readers))
            await enter(found)
        return found

    async def _of_replica(
        self, stack: AsyncExitStack, first: Callable[[Connection], Awaitable[object]]
    ) -> Connection | None:
        """A connection to the replica that carried out `first`, where it has what is to be seen."""
        if self.replica is None or not await self.replica.usable():
            return None
        with suppress(Unavailable, *OUTAGES):
            found = await stack.enter_async_context(self._connection(self.replica.hand))
            await first(found)
            return found
        self.replica.gone()
        return None

    @asynccontextmanager
    async def looking(self, tenant: int) -> AsyncIterator[Tenant]:
        """One tenant's rows as they were at one moment; nothing can be written.

        A replica may have it.
        """
        async with self._only_reading(tenant, _AS_OF_ONE_MOMENT) as one:
            yield one

    async def position(self) -> str:
        """Where the log ends now: whoever names it in a read sees all that is committed yet."""
        found: str = await self.call("log_position")
        return found

    def is_asked_a_lot(self, tenant: int) -> bool:
        """Whether so much is read of that tenant that it is worth keeping in memory."""
        return self._readers is not None and self._steady.is_one(tenant)

    async def name_of(self, tenant: int) -> str | None:
        """The name of a tenant; None where there is none of that number."""
        async with self.tenant(tenant) as one:
            found: str | None = await one.value("tenant_name")
        return found

    @asynccontextmanager
    async def snapshot(self, tenant: int) -> AsyncIterator[Tenant]:
        """The same, times in UTC."""
        begin = f"{_AS_OF_ONE_MOMENT}; set local timezone = 'UTC'"
        async with self._only_reading(tenant, begin) as one:
            yield one

    @asynccontextmanager
    async def _only_reading(self, tenant: int, begin: str) -> AsyncIterator[Tenant]:
        """A transaction that writes nothing, and is therefore never committed."""

        def first(connection: Connection) -> Awaitable[object]:
            return connection.execute(f"{begin}; {visiting(tenant)}")

        async with AsyncExitStack() as stack:
            connection = await self._of_replica(stack, first)
            if connection is None:
                connection = await stack.enter_async_context(self._connection(self._readers))
                await first(connection)
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
    async def transaction(self) -> AsyncIterator[Connection]:
        """A plain transaction, for the outbox relay."""
        async with self._connection() as connection, connection.transaction():
            yield connection

    async def check(self) -> None:
        """Raises `Unavailable` where Postgres does not answer, `Misconfigured` without a schema."""
        if not await self.call("schema_stands"):
            raise unmigrated()

    @asynccontextmanager
    async def _connection(self, hand: Hand | None = None) -> AsyncIterator[Connection]:
        try:
            async with (hand or self._main).lent() as connection:
                yield connection
        except asyncpg.InsufficientPrivilegeError as error:
            if 'policy "stands"' in str(error):
                raise Unauthenticated from error
            raise
        except OUTAGES as error:
            raise Unavailable("Postgres", "try again shortly") from error


@asynccontextmanager
async def open_database(
    url: str,
    size: int = 8,
    acquire_timeout: float = 5.0,
    min_size: int = 1,
    readers: int = 0,
    registry: CollectorRegistry | None = None,
    replica: ReplicaSpec | None = None,
    reader_url: str | None = None,
) -> AsyncIterator[Database]:
    """A warm pool of at most `size` connections, one of `readers` beside it, one on a replica.

    `reader_url`: the same database as who may only read, for `readers`; unset: `url`. `registry`
    takes what is counted of them. Raises `Misconfigured` or `Unavailable`.
    """
    meters = PoolMeters(registry or CollectorRegistry())

    async def opened(
        name: str, pool: AbstractAsyncContextManager[asyncpg.Pool[asyncpg.Record]]
    ) -> Hand:
        hand = Hand(name, await stack.enter_async_context(pool), acquire_timeout, meters)
        stack.push_async_callback(hand.close)
        return hand

    async with AsyncExitStack() as stack:
        main = await opened(MAIN, open_pool(url, size, min_size))
        reading = other = None
        if readers:
            who = (reader_url, "reader_database_url") if reader_url else (url, "database_url")
            reading = await opened(READERS, open_pool(who[0], readers, min_size, Reader, who[1]))
        if replica:
            # It need not be there: nothing is opened before the first read.
            pool = open_pool(replica.url, readers, 0, Reader, "database_read_url")
            other = Replica(await opened(REPLICA, pool), replica)
        yield Database(main, reading, other)


async def _roll_back(connection: Connection) -> None:
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

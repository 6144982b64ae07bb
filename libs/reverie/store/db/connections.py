"""Opens asyncpg pools under the application role, and read-only connections with cached plans."""

from __future__ import annotations

import json
from asyncio import timeout as asyncio_timeout
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import asyncpg
from pgvector.asyncpg import register_vector

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.store.db.roles import APP_ROLE, READ_ROLE, SCHEMA

# What is written is planned for each call; those who only read keep their plans (`READER_SETUP`).
SERVER_SETTINGS = {
    "role": APP_ROLE,
    "search_path": f"{SCHEMA},public",
    "plan_cache_mode": "force_custom_plan",
    "application_name": "reverie",
    "jit": "off",
    # A filtered HNSW scan goes on until it has enough rows.
    "hnsw.iterative_scan": "relaxed_order",
}
# A login that may only read takes the role for that; one of the services, as for all they do.
_SET_ROLE = f"""
select set_config('role', coalesce(
  (select r.rolname from pg_roles r
   where r.rolname = '{READ_ROLE}' and pg_has_role(r.oid, 'member')), '{APP_ROLE}'), false)
"""  # noqa: S608
_ROLE_MISSING = f"the role {APP_ROLE} is missing: run `reverie migrate`"
_NOT_A_READER = f"this login is no member of {READ_ROLE}: run `reverie migrate --login`"
CONFLICT_ERRORS = (
    # Also what a replica says of a statement that stands in the way of what it replays.
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
)
"""Errors of a transaction that Postgres rejected because of another one."""

OUTAGE_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    # Its disk or memory is full, or all its connections are taken.
    asyncpg.InsufficientResourcesError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    # What it says of a connection that broke while a statement was under way on it.
    asyncpg.InternalClientError,
    *CONFLICT_ERRORS,
)
"""Temporary errors."""


IDLE_CONNECTION_SECONDS = 30
"""Idle connections close after this time: a server process takes 3 to 28 MB.

The next recall opens them again and takes about 0.13 s longer.
"""


READER_SETUP = (
    "set default_transaction_read_only = on; set plan_cache_mode = force_generic_plan;"
    " set enable_seqscan = off"
)
"""Settings of a reader connection.

Its plans are made once for all tenants, because planning took 6 of 30 ms a recall: all partitions
are locked, and each call selects one. They must not scan a table in full because it was small at
planning time.
"""


def build_enter_sql(tenant: int) -> str:
    """Returns the SQL that makes a tenant's rows visible to a reader from now on."""
    return f"set reverie.tenant = '{int(tenant)}'"


def build_local_enter_sql(tenant: int) -> str:
    """Returns the SQL that makes a tenant's rows visible in one transaction only."""
    return (
        f"set local reverie.tenant = '{int(tenant)}'; set local enable_seqscan = on;"
        " set local plan_cache_mode = force_custom_plan"
    )


class ReaderConnection(asyncpg.Connection):
    """A connection that only reads, and stays with the tenant it read last."""

    __slots__ = ("_entered",)

    async def enter(self, tenant: int) -> None:
        """From now on this tenant's rows are seen."""
        if getattr(self, "_entered", None) != tenant:
            self._entered = None
            await self.execute(build_enter_sql(tenant))
            self._entered = tenant


@asynccontextmanager
async def open_pool(
    url: str,
    size: int,
    connection_class: type[asyncpg.Connection[asyncpg.Record]] = asyncpg.Connection,
    setting: str = "database_url",
    *,
    connect_now: bool = True,
    server_settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[asyncpg.Pool[asyncpg.Record]]:
    """Opens a pool of connections to the address of a setting; closes idle ones after a while.

    `server_settings`: further settings of the sessions of Postgres.
    Raises `Misconfigured` or `Unavailable`; without `connect_now`, the first use does.
    """
    is_reader = connection_class is ReaderConnection
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=0,
            max_size=size,
            connection_class=connection_class,
            init=_prepare_reader if is_reader else prepare_connection,
            reset=_reset_connection,
            server_settings={
                name: value
                for name, value in {**SERVER_SETTINGS, **server_settings}.items()
                if not is_reader or name != "role"
            },
            command_timeout=60,
            timeout=10,
            max_inactive_connection_lifetime=IDLE_CONNECTION_SECONDS,
            # One whose time runs out in the driver stays until all of memory is looked through.
            max_cached_statement_lifetime=0,
        )
        if connect_now:
            await pool.release(await pool.acquire())
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise Misconfigured(setting, "Postgres refuses this user or password") from error
    except asyncpg.InvalidCatalogNameError as error:
        raise Misconfigured(setting, "there is no such database: create it") from error
    except (asyncpg.InvalidParameterValueError, asyncpg.InsufficientPrivilegeError) as error:
        raise Misconfigured(setting, _NOT_A_READER if is_reader else _ROLE_MISSING) from error
    except OUTAGE_ERRORS as error:
        if isinstance(error, PermissionError) and error.filename:
            reason = f"{error.filename} may not be read: set HOME to a folder of this user"
            raise Misconfigured(setting, reason) from error
        raise Unavailable("Postgres", f"is it running, and is {setting} right?") from error
    try:
        yield pool
    finally:
        await _close_pool(pool)


async def prepare_connection(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    try:
        await register_vector(connection, schema="public")
    except ValueError as error:  # no such type
        raise build_schema_missing_error() from error
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )


async def _prepare_reader(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.execute(f"{_SET_ROLE}; {READER_SETUP}")
    await prepare_connection(connection)


def build_schema_missing_error() -> Misconfigured:
    return Misconfigured("database_url", "the database has no schema yet: run `reverie migrate`")


async def _reset_connection(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """All settings are local to a transaction, so an open one is all there is to clear."""
    if connection.is_in_transaction():
        await connection.execute("rollback")


async def _close_pool(pool: asyncpg.Pool[asyncpg.Record]) -> None:
    """Waits for running statements a little, then cuts."""
    try:
        async with asyncio_timeout(3):
            await pool.close()
    except TimeoutError:
        pool.terminate()

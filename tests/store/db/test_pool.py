"""The connection pool: an unready database, spans, snapshots, and transient errors."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import asyncpg
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry

from reverie.domain.core.errors import Misconfigured
from reverie.store.db import database as pool
from reverie.store.db.connection_pool import ConnectionPool, PoolMetrics
from reverie.store.db.connections import OUTAGE_ERRORS, ReaderConnection, open_pool
from reverie.store.db.database import open_database
from reverie.store.platform.api_keys import ensure_tenant
from reverie.testing.servers import DatabaseUrls
from tests.support.span_recording import record_spans
from tests.support.store_setup import admin_rows

TRANSIENT: tuple[type[BaseException], ...] = (
    *(asyncpg.DiskFullError, asyncpg.OutOfMemoryError, asyncpg.TooManyConnectionsError),
    *(asyncpg.CannotConnectNowError, asyncpg.InternalClientError, ConnectionResetError),
    *(asyncpg.DeadlockDetectedError, asyncpg.SerializationError),
)


def test_outages_full_servers_and_lost_races_are_transient_and_invalid_statements_are_not() -> None:
    assert all(issubclass(error, OUTAGE_ERRORS) for error in TRANSIENT)
    for error in (asyncpg.UniqueViolationError, asyncpg.SyntaxOrAccessError):
        assert not issubclass(error, OUTAGE_ERRORS)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return record_spans(monkeypatch, pool, "_tracer")


async def test_an_unmigrated_database_is_reported_as_such(
    database: DatabaseUrls, empty_database: DatabaseUrls
) -> None:
    """The role stands already: another database of the server has been migrated."""
    with pytest.raises(Misconfigured, match="reverie migrate"):
        async with open_database(empty_database.admin_url):
            pass


async def test_a_database_with_pgvector_and_no_schema_is_not_ready(
    database: DatabaseUrls, empty_database: DatabaseUrls
) -> None:
    admin_rows(empty_database.admin_url, "create extension vector schema public")
    async with open_database(empty_database.admin_url) as db:
        with pytest.raises(Misconfigured, match="reverie migrate"):
            await db.check()
    async with open_database(database.service_url) as db:
        await db.check()


async def test_an_unreadable_home_folder_is_named_in_the_error(
    database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks there for certificates, but not on the way to the embedded server."""

    def closed(path: Path, *_: object, **__: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", closed)
    async with open_database(database.service_url) as db:
        await db.check()
    with pytest.raises(Misconfigured, match=r"\.postgresql.* may not be read: set HOME"):
        async with open_database(database.service_url.partition("?")[0]):
            pass


async def test_the_span_of_a_failed_statement_names_the_error_and_quotes_nothing(
    database: DatabaseUrls, spans: InMemorySpanExporter
) -> None:
    async with open_database(database.service_url) as db:
        with pytest.raises(asyncpg.PostgresError, match="hunter2"):
            await db.fetch_rows("remember", 1, "one", [{"id": "hunter2"}], {}, None, None, "")
    [span] = spans.get_finished_spans()
    assert span.name == "sql remember"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "InvalidTextRepresentationError"
    assert span.events == ()
    assert "hunter2" not in span.to_json()


@pytest.mark.parametrize("readers", [0, 1])
async def test_several_statements_of_a_snapshot_see_one_moment(
    database: DatabaseUrls, readers: int
) -> None:
    tenant = ensure_tenant(database.admin_url, "one")
    async with (
        open_database(database.service_url, size=2, reader_size=readers) as db,
        db.snapshot(tenant) as one,
    ):
        assert await one.fetch_value("tenant_name") == "one"
        admin_rows(database.admin_url, "update reverie.tenant set name = 'another' returning 1")
        assert await one.fetch_value("tenant_name") == "one"
        assert await db.get_tenant_name(tenant) == "another"


async def test_a_failed_transaction_is_not_lent_to_the_next_caller(
    shared_database: DatabaseUrls,
) -> None:
    async with open_pool(shared_database.service_url, 1) as lent:
        one_only = ConnectionPool("main", lent, 5.0, PoolMetrics(CollectorRegistry()))
        with pytest.raises(asyncpg.UndefinedTableError):
            async with one_only.acquire() as connection:
                await connection.execute("begin; select * from nowhere")
        async with one_only.acquire() as connection:
            assert not connection.is_in_transaction()
            assert await connection.fetchval("select 1") == 1
            assert (one_only.busy, one_only.idle, one_only.limit) == (1, 0, 1)
        assert (one_only.busy, one_only.idle) == (0, 1)


async def test_prepared_statements_are_released_after_use(
    shared_database: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the collector looks through all of memory, which a service does once in minutes."""
    loop = asyncio.get_running_loop()

    def statements() -> int:
        return sum(type(one).__name__ == "PreparedStatementState" for one in gc.get_objects())

    async with (
        open_pool(shared_database.service_url, 1, ReaderConnection) as pool,
        pool.acquire() as connection,
    ):
        gc.collect()
        gc.disable()
        try:
            await connection.fetchval("select 1")
            kept = statements()
            assert kept
            clock = loop.time
            for hours in range(1, 4):
                with monkeypatch.context() as later:
                    later.setattr(loop, "time", lambda ahead=hours: clock() + 3600 * ahead)
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                await connection.fetchval("select 1")
            assert statements() == kept
        finally:
            gc.enable()

"""What the database logins of services may read, change and not touch.

Tables, sequences and functions come from the catalogue, so that none can be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from reverie.domain.core.errors import Misconfigured, NotFound
from reverie.store.db.database import open_database
from reverie.store.db.server_admin import ensure_login
from reverie.store.graph.graph import GraphStore, SubgraphRequest
from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, admin_rows, new, write

SCHEMA = "set search_path to reverie, public"
TABLES = """
select c.relname, has_table_privilege('reverie_read', c.oid, 'select') from pg_class c
where c.relnamespace = 'reverie'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  and c.relname not like '%%yoyo%%' order by 1
"""
UNREAD = {
    *("api_key", "audit", "webhook", "idempotency", "llm_usage_daily", "quota_usage", "outbox"),
    *("reindex_progress", "tenant", "maintenance_pass", "vault", "vault_epoch"),
    *("console_session", "retired_key", "vault_retired", "document"),
    *("engine_agent", "engine_chain", "engine_effect", "engine_group", "engine_image"),
    *("engine_message", "engine_spend", "engine_turn"),
}
"""What no read needs: keys, secrets, counts, work. Of keys and tenants some columns are read."""
AROUND = SubgraphRequest(1, 5, 5, ["active"])
MAY_READ = {"api_key": "label", "tenant": "name"}
SEQUENCES = "select sequencename from pg_sequences where schemaname = 'reverie' order by 1"
ACROSS = """
select p.oid::regprocedure::text, has_function_privilege('reverie_read', p.oid, 'execute')
from pg_proc p where p.pronamespace = 'reverie'::regnamespace and p.prosecdef order by 1
"""


async def allowed(url: str, statements: Iterable[str]) -> list[str]:
    """Those statements that a login may carry out, each undone again."""
    connection = await asyncpg.connect(url)
    done: list[str] = []
    try:
        # Its rights alone are to stand in the way.
        await connection.execute(f"{SCHEMA}; set default_transaction_read_only = off")
        for statement in statements:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await connection.execute(f"set local reverie.tenant = '1'; {statement}")
                done.append(statement)
            except asyncpg.InsufficientPrivilegeError:
                pass
            finally:
                await transaction.rollback()
    finally:
        await connection.close()
    return done


def changes(tables: Iterable[str]) -> list[str]:
    """All ways to change rows of tables."""
    ways = (
        "insert into {0} default values",
        "update {0} set {1} = {1}",
        "delete from {0}",
        "truncate {0}",
        "merge into {0} using (values (1)) v on true when matched then delete",
        "select * from {0} for update",
        "copy {0} from program 'true'",
        "lock {0} in exclusive mode",
    )
    columns = {"tenant": "name", "retired_key": "hash"}
    return [way.format(t, columns.get(t, "tenant")) for t in tables for way in ways]


def schema_changes(tables: Iterable[str]) -> list[str]:
    """Ways to change what tables there are, how they are held, and who one is."""
    of_table = (
        "alter table {0} add column more int",
        "alter table {0} disable row level security",
        "alter table {0} no force row level security",
        "alter table {0} disable trigger all",
        "create policy everyone on {0} using (true)",
        "drop policy {1} on {0}",
        "create index on {0} ((1))",
        "drop table {0}",
    )
    whole = (
        "create table made (x int)",
        "create table public.made (x int)",
        "create schema made",
        "create extension hstore",
        "create function made() returns int language sql as 'select 1'",
        "create or replace function scope_matches(patterns text[], scope text) returns boolean"
        " language sql as 'select true'",
        "call create_vector_table('vec_made', 3)",
        "set role reverie_system",
        "set role reverie",
        "set session authorization reverie",
        "set session_replication_role = replica",
        "create role made",
        "alter role reverie_app superuser",
        "grant reverie_system to current_user",
        "select tenant_names()",
        "select set_tenant_limits(1, '{}')",
        "copy (select 1) to program 'true'",
        "select pg_read_file('postgresql.conf')",
    )
    policies = {"retired_key": "across_tenants"}
    return [
        *(way.format(t, policies.get(t, "own_tenant")) for t in tables for way in of_table),
        *whole,
    ]


async def test_the_reader_login_can_read_what_it_needs_and_write_nothing(
    store: Store, database: DatabaseUrls
) -> None:
    tables = [name for name, _ in admin_rows(database.admin_url, TABLES)]
    assert {name for name, reads in admin_rows(database.admin_url, TABLES) if not reads} == UNREAD
    assert await allowed(database.reader_url, changes(tables)) == []
    # All that a table allows its readers, it allows this one.
    ways = [f"select * from {name}" for name in tables if name not in UNREAD]
    ways += [f"select {column} from {name}" for name, column in MAY_READ.items()]
    assert await allowed(database.reader_url, ways) == ways
    hidden = [f"select * from {name}" for name in UNREAD]
    assert await allowed(database.reader_url, hidden) == []
    sequences = [name for (name,) in admin_rows(database.admin_url, SEQUENCES)]
    assert sequences
    ways = [f"select nextval('{name}')" for name in sequences]
    ways += [f"select setval('{name}', 1)" for name in sequences]
    assert await allowed(database.reader_url, ways) == []
    crossing = admin_rows(database.admin_url, ACROSS)
    assert len(crossing) > 15
    assert [name for name, may in crossing if may] == []
    assert await allowed(database.reader_url, schema_changes(tables)) == []
    assert await allowed(database.reader_url, ["set role reverie_app"]) == []


async def test_the_service_login_can_change_rows_and_not_the_schema(
    store: Store, database: DatabaseUrls
) -> None:
    tables = [name for name, _ in admin_rows(database.admin_url, TABLES)]
    assert await allowed(database.service_url, schema_changes(tables)) == []
    heavy = [f"truncate {name}" for name in tables]
    assert await allowed(database.service_url, heavy) == []
    ways = [f"delete from {name}" for name in tables if name not in {"tenant", "retired_key"}]
    assert await allowed(database.service_url, ways) == ways


async def test_neither_login_sees_rows_of_another_tenant(
    store: Store, database: DatabaseUrls
) -> None:
    await write(store, new("what only one of them knows"))
    [other] = await write(store, new("what the other keeps"), who=store.other)
    async with open_database(
        database.service_url, size=2, reader_size=2, reader_url=database.reader_url
    ) as db:
        for opened in (db.tenant_reader, db.snapshot, db.export_snapshot):
            async with opened(store.me.tenant) as mine:
                assert await mine._connection.fetchval("select current_user") == "reverie_read"
                assert await mine._connection.fetchval("select count(*) from memory") == 1
                assert (await mine._connection.fetchval("show transaction_read_only")) == "on"
        with pytest.raises(NotFound):
            await GraphStore(db).load_subgraph(store.me, other, AROUND)
        assert len((await GraphStore(db).load_subgraph(store.other, other, AROUND)).nodes) == 1
    for url in (database.service_url, database.reader_url):
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(SCHEMA)
            assert await connection.fetchval("select count(*) from memory") == 0
            await connection.execute(f"set reverie.tenant = '{store.me.tenant}'")
            assert await connection.fetchval("select count(*) from memory") == 1
        finally:
            await connection.close()


async def test_a_reader_is_read_only_and_a_login_without_a_role_is_refused(
    database: DatabaseUrls,
) -> None:
    with psycopg.connect(database.reader_url, autocommit=True) as connection:
        assert connection.execute("show default_transaction_read_only").fetchone() == ("on",)
    name = f"stranger_{database.name}"
    ensure_login(database.admin_url, name, "nobody", "pg_monitor")
    parts = urlsplit(database.admin_url)
    url = f"postgresql://{name}:nobody@{parts.hostname}:{parts.port}/{database.name}"
    with pytest.raises(Misconfigured) as told:
        async with open_database(database.service_url, size=1, reader_size=1, reader_url=url):
            pass
    assert told.value.setting == "database_readonly_url"
    assert "reverie_read" in str(told.value)
    # A login of services alone reads as it always did.
    async with (
        open_database(database.service_url, size=1, reader_size=1) as db,
        db.tenant_reader(1) as t,
    ):
        assert await t._connection.fetchval("select current_user") == "reverie_app"

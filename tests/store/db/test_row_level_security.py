"""Row-level security on every table of the catalogue."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from reverie.testing.servers import DatabaseUrls
from tests.support.store_setup import Store, add_tenants, admin_rows, app_connection, new, write

TABLES = """
select c.relname, c.relrowsecurity, c.relforcerowsecurity,
       (select count(*) from pg_policy p where p.polrelid = c.oid),
       exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant')
from pg_class c
where c.relnamespace = 'reverie'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  and c.relname not like '%%yoyo%%'
order by 1
"""
KEPT = {"audit": "permission denied for table audit"}
"""Notes of who did what may not be changed at all."""
FILL = """
select format('insert into %%I (%%s) values (%%s)', c.relname,
  string_agg(quote_ident(a.attname), ', ' order by a.attnum),
  string_agg(case
    when a.attname = 'tenant' then '{tenant}'
    when pg_get_constraintdef(k.oid) is not null
      then quote_literal((regexp_match(pg_get_constraintdef(k.oid), '''(\\w+)'''))[1])
    when t.typname = 'uuid' then 'gen_random_uuid()'
    when t.typname in ('int2', 'int4', 'int8', 'float4', 'float8') then '1'
    when t.typname = 'bytea' then 'uuid_send(gen_random_uuid())'
    when t.typname = 'jsonb' then '''{{}}'''
    when t.typname = 'xid8' then 'pg_current_xact_id()'
    when t.typname in ('timestamptz', 'date') then 'now()'
    when t.typname = 'bool' then 'false'
    when t.typcategory = 'A' then '''{{}}'''
    when t.typname = 'halfvec' then 'array_fill(0.5::real, array[384])::halfvec'
    when t.typname = 'sparsevec' then '''{{1:1}}/30522'''
    else '''x''' end, ', ' order by a.attnum))
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = '' and (a.attnotnull or a.attname = 'tenant') and a.attidentity = ''
join pg_type t on t.oid = a.atttypid
left join pg_constraint k on k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]
  and t.typname = 'text'
where c.relnamespace = 'reverie'::regnamespace and c.relname = %s
group by c.relname
"""


def _tables(admin_url: str) -> list[str]:
    return [name for name, *_, has_tenant in admin_rows(admin_url, TABLES) if has_tenant]


def _insert(admin_url: str, table: str, tenant: int) -> str:
    """A statement that adds a row, made from the catalogue: no table can be forgotten.

    Where another row brought it about already, as the count of changes, it stays one.
    """
    statement: str = admin_rows(admin_url, FILL, table)[0][0]
    return f"{statement.format(tenant=tenant)} on conflict do nothing"


def test_every_table_has_a_tenant_column_or_outlives_tenants(shared_database: DatabaseUrls) -> None:
    without = [name for name, *_, has in admin_rows(shared_database.admin_url, TABLES) if not has]
    assert without == ["retired_key", "tenant"]


def test_every_table_has_forced_row_security_and_a_policy(shared_database: DatabaseUrls) -> None:
    found = admin_rows(shared_database.admin_url, TABLES)
    assert len(found) > 20
    assert [row for row in found if not (row[1] and row[2] and row[3])] == []


async def test_rows_are_seen_by_their_tenant_alone_and_cannot_be_moved(store: Store) -> None:
    tables = _tables(store.admin_url)
    for table in tables:
        admin_rows(store.admin_url, _insert(store.admin_url, table, store.me.tenant))
    seen: dict[tuple[str, Any], int] = {}
    for said in (None, "", store.other.tenant, 999_999, store.me.tenant):
        async with app_connection(store.service_url, said) as connection:
            for table in [*tables, "tenant"]:
                seen[table, said] = await connection.fetchval(f"select count(*) from {table}")
    mine = {table: n for (table, said), n in seen.items() if said == store.me.tenant}
    # The rows of other tables are recorded as changes too.
    assert mine.pop("memory_change") > 1
    assert mine == dict.fromkeys({*tables, "tenant"} - {"memory_change"}, 1)
    shown = {key: n for key, n in seen.items() if n and key[1] != store.me.tenant}
    assert shown == {("tenant", store.other.tenant): 1}
    async with app_connection(store.service_url, store.me.tenant) as connection:
        for table in tables:
            refused = KEPT.get(table, "row-level security")
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match=refused):
                await connection.execute(f"update {table} set tenant = {store.other.tenant}")


async def test_no_table_accepts_a_row_of_another_tenant(shared_store: Store) -> None:
    store = shared_store
    async with app_connection(store.service_url, store.me.tenant) as connection:
        for table in _tables(store.admin_url):
            statement = _insert(store.admin_url, table, store.other.tenant)
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await connection.execute(statement)


async def test_the_services_cannot_change_tenants_or_query_a_partition(shared_store: Store) -> None:
    async with app_connection(shared_store.service_url, shared_store.me.tenant) as connection:
        for statement in (
            "insert into tenant (name) values ('third')",
            "update tenant set served_at = now()",
            "delete from tenant",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
                await connection.execute(statement)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="memory_0"):
            await connection.execute("select * from memory_0")


def test_partitions_carry_no_grant(shared_database: DatabaseUrls) -> None:
    granted = admin_rows(
        shared_database.admin_url,
        """
        select c.relname, r.rolname from pg_class c
        cross join lateral aclexplode(c.relacl) g left join pg_roles r on r.oid = g.grantee
        where c.relnamespace = 'reverie'::regnamespace and c.relispartition
          and c.relkind in ('r', 'p') and g.grantee <> c.relowner
        """,
    )
    parts = admin_rows(
        shared_database.admin_url, "select count(*) from pg_class where relispartition"
    )
    assert parts[0][0] > 100
    assert granted == []


def test_the_roles_cannot_bypass_row_security_and_services_are_in_no_other(
    shared_database: DatabaseUrls,
) -> None:
    found = admin_rows(
        shared_database.admin_url,
        """
        select rolname, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication
        from pg_roles where rolname in ('reverie_app', 'reverie_system', 'reverie_service')
        order by 1
        """,
    )
    names = ["reverie_app", "reverie_service", "reverie_system"]
    assert found == [(name, False) for name in names]
    found = admin_rows(
        shared_database.admin_url,
        """
        select rolname from pg_roles
        where pg_has_role('reverie_service', oid, 'member') and rolname <> 'reverie_service'
        """,
    )
    assert found == [("reverie_app",)]


def test_every_view_uses_the_rights_of_its_reader(shared_database: DatabaseUrls) -> None:
    views = admin_rows(
        shared_database.admin_url,
        """
        select relname from pg_class where relnamespace = 'reverie'::regnamespace
          and relkind in ('v', 'm')
          and coalesce(reloptions::text, '') !~ 'security_invoker=(true|on)'
        """,
    )
    assert views == []


async def test_a_session_that_resets_its_tenant_in_a_transaction_sees_nothing_afterwards(
    shared_store: Store,
) -> None:
    store = shared_store
    await write(store, new("only mine"))
    async with app_connection(store.service_url) as connection:
        async with connection.transaction():
            await connection.execute(f"set local reverie.tenant = '{store.me.tenant}'")
            assert await connection.fetchval("select count(*) from memory") == 1
        assert await connection.fetchval("select count(*) from memory") == 0


def test_a_new_tenant_requires_a_plain_name(shared_database: DatabaseUrls) -> None:
    with pytest.raises(Exception, match="tenant_name_check"):
        add_tenants(shared_database.admin_url, "Not A Name")

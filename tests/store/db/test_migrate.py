"""The baseline and migrations: repeatable, concurrent, without superuser rights."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from time import sleep

import psycopg
import pytest

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.domain.core.memory import WriteResult
from reverie.embedded.home import open_home
from reverie.embedded.servers import postgres
from reverie.store.db import migrate as store_migrate
from reverie.store.db.database import open_database
from reverie.store.db.migrate import list_pending_migrations, migrate
from reverie.store.memories.memories import MemoryStore
from reverie.store.platform.api_keys import (
    ApiKeyStore,
    NewApiKey,
    create_key,
    list_keys,
    revoke_key,
)
from reverie.testing.servers import UNSAFE_OPTIONS, DatabaseUrls, TestRun
from tests.support.store_setup import admin_rows, new, principal

STORE = Path(str(files("reverie.store")))
ALL = sorted(file.stem for file in (STORE / "schema").glob("*.sql"))
"""What a new database gets: the baseline."""
OBJECTS = """
select string_agg(x, ',' order by x) from (
  select c.relname::text || c.relkind::text || coalesce(c.relacl::text, '') as x from pg_class c
  where c.relnamespace = 'reverie'::regnamespace and c.relname !~ 'yoyo'
  union all
  select p.oid::regprocedure::text || coalesce(p.proacl::text, '') from pg_proc p
  where p.pronamespace = 'reverie'::regnamespace
) o (x)
"""

PARTITIONS = """
select distinct count(*) from pg_inherits join pg_class on oid = inhparent
where relkind = 'p' group by inhparent
"""


@pytest.fixture
def url(empty_database: DatabaseUrls) -> str:
    """The owner's, of a database without tables that gets few partitions, which is sooner done."""
    return f"{empty_database.admin_url}&options=-creverie.partitions%3D2"


def test_migrating_twice_changes_nothing(url: str) -> None:
    assert list_pending_migrations(url) == ALL
    tables = "select count(*) from information_schema.tables where table_schema !~ '^(pg_|info)'"
    assert admin_rows(url, tables) == [(0,)]
    told: list[tuple[str, int, int]] = []
    assert migrate(url, lambda *one: told.append(one)) == ALL
    assert told == [(name, place + 1, len(ALL)) for place, name in enumerate(ALL)]
    assert admin_rows(url, PARTITIONS) == [(2,)]
    before = admin_rows(url, OBJECTS)
    assert migrate(url) == []
    assert admin_rows(url, OBJECTS) == before
    assert list_pending_migrations(url) == []


def test_concurrent_migrations_apply_the_baseline_once(url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: migrate(url), range(4)))
    assert sorted(name for names in found for name in names) == ALL
    assert list_pending_migrations(url) == []


def test_tables_have_sixteen_partitions_by_default(
    empty_database: DatabaseUrls,
) -> None:
    migrate(empty_database.admin_url)
    assert admin_rows(empty_database.admin_url, PARTITIONS) == [(16,)]


def test_a_failing_baseline_leaves_nothing_behind(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "schema/99_wrong.sql", "select no_such_function();")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        migrate(url)
    monkeypatch.undo()
    assert list_pending_migrations(url) == ALL


def test_a_schema_of_no_release_is_refused(url: str) -> None:
    admin_rows(url, "create schema reverie; create table reverie.memory ()")
    with pytest.raises(Misconfigured, match="use an empty database"):
        migrate(url)


def _add(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, sql: str) -> None:
    """Adds a schema file or a migration to those that there are."""
    for part in ("schema", "migrations"):
        shutil.copytree(STORE / part, folder / part)
    (folder / name).write_text(sql)
    monkeypatch.setattr(store_migrate, "files", lambda _: folder)


MORE = "alter table memory add more int;"


def test_a_database_of_an_earlier_release_gets_the_later_migrations(
    database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "migrations/0001_more.sql", MORE)
    assert list_pending_migrations(database.admin_url) == ["0001_more"]
    told: list[tuple[str, int, int]] = []
    assert migrate(database.admin_url, lambda *one: told.append(one)) == ["0001_more"]
    assert told == [("0001_more", 1, 1)]
    assert list_pending_migrations(database.service_url) == []
    assert migrate(database.admin_url) == []
    admin_rows(database.admin_url, "select more from memory")


def test_a_new_database_has_known_migrations_marked_as_applied(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "migrations/0001_more.sql", "select no_such_function();")
    assert migrate(url) == ALL
    assert list_pending_migrations(url) == []
    assert migrate(url) == []


def test_the_lock_of_a_killed_migration_blocks_nobody(
    database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "migrations/0001_more.sql", MORE)
    migrate(database.admin_url)
    admin_rows(
        database.admin_url, "insert into yoyo_lock (locked, ctime, pid) values (1, now(), 999999)"
    )
    (tmp_path / "migrations/0002_again.sql").write_text("alter table memory add again int;")
    assert migrate(database.admin_url) == ["0002_again"]
    assert admin_rows(database.admin_url, "select count(*) from yoyo_lock") == [(0,)]


def test_a_table_in_use_postpones_a_migration_and_nobody_waits_long(
    database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "migrations/0001_more.sql", MORE)
    monkeypatch.setattr(store_migrate, "LOCK_SECONDS", 0.2)
    with psycopg.connect(database.admin_url) as busy:
        busy.execute("select count(*) from reverie.memory")
        with pytest.raises(Unavailable, match="stays in use"):
            migrate(database.admin_url)
        assert list_pending_migrations(database.admin_url) == ["0001_more"]
    assert migrate(database.admin_url) == ["0001_more"]


RING = """
set local deadlock_timeout = '10ms';
lock table memory in exclusive mode;
do $$
begin
  while not exists (select from pg_locks l join pg_database d on d.oid = l.database
                    where d.datname = current_database() and not l.granted
                      and l.relation = 'memory'::regclass) loop
    perform pg_sleep(0.01);
  end loop;
end $$;
lock table session in exclusive mode;
"""


def test_a_migration_that_deadlocks_with_a_writer_is_postponed_and_the_writer_continues(
    database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(tmp_path, monkeypatch, "migrations/0001_ring.sql", RING)
    held = (
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
        " where d.datname = current_database() and l.granted and l.mode = 'ExclusiveLock'"
        " and l.relation = 'reverie.memory'::regclass"
    )
    with psycopg.connect(database.admin_url) as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("set deadlock_timeout = '60s'")
        writer.execute("lock table reverie.session in row exclusive mode")
        migrating = pool.submit(migrate, database.admin_url)
        while writer.execute(held).fetchone() == (0,):
            sleep(0.01)
        writer.execute("lock table reverie.memory in row exclusive mode")
        with pytest.raises(Unavailable, match="stays in use"):
            migrating.result()


def test_an_invalid_address_is_distinguished_from_an_unreachable_server(
    postgres_server: str,
) -> None:
    with pytest.raises(Unavailable):
        migrate("postgresql://nobody:x@127.0.0.1:1/none")
    with pytest.raises((Unavailable, Misconfigured)):
        migrate(postgres_server.replace("/postgres", "/there_is_no_such_database"))


@pytest.fixture
def cluster(test_run: TestRun) -> Iterator[postgres.PostgresInstance]:
    """A server of the test's own: roles belong to the whole of it."""
    home = open_home(test_run.new_folder("cluster"))
    server = postgres.start(postgres.PostgresSpec(home, options=UNSAFE_OPTIONS))
    try:
        yield server
    finally:
        postgres.stop(server)


def _owner(server: postgres.PostgresInstance, name: str, database: str) -> str:
    """The URL of an owner who may make roles and is no superuser."""
    with psycopg.connect(server.admin_url("postgres"), autocommit=True) as connection:
        connection.execute(f"create role {name} login createrole password 'own'".encode())
        connection.execute(f"create database {database} owner {name}".encode())
    with psycopg.connect(server.admin_url(database), autocommit=True) as connection:
        trusted = connection.execute(
            "select trusted from pg_available_extension_versions where name = 'vector'"
        ).fetchone()
        if trusted != (True,):
            connection.execute("create extension vector schema public")
    address = f"postgresql://{name}:own@{server.host}:{server.port}/{database}"
    return f"{address}?options=-creverie.partitions%3D2"


async def test_owners_without_superuser_rights_can_migrate_and_run_everything(
    cluster: postgres.PostgresInstance,
) -> None:
    url = _owner(cluster, "owner", "own")
    assert migrate(url) == ALL
    assert migrate(url) == []
    key = create_key(url, NewApiKey("first", tenant="t"))
    [row] = list_keys(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create role service login password 'serve' in role reverie_app")
    service = url.replace("owner:own@", "service:serve@").partition("?")[0]
    async with open_database(service, size=2) as db:
        found = await ApiKeyStore(db).find(hashlib.sha256(key.encode()).digest())
        assert found is not None
        who = principal(found.tenant, "t")
        [written] = await MemoryStore(db).remember(who, [new("it works")], {})
        assert isinstance(written, WriteResult)
        assert (await MemoryStore(db).get(who, written.id)).content == "it works"
    revoke_key(url, row.id)
    assert list_keys(url)[0].revoked is not None
    # The roles are there already, made by another.
    second = _owner(cluster, "bob", "b")
    with pytest.raises(Misconfigured, match="reverie_app"):
        migrate(second)
    with psycopg.connect(cluster.admin_url("b"), autocommit=True) as connection:
        connection.execute("grant reverie_app, reverie_system to bob")
    assert migrate(second) == ALL


TAKES = re.compile(
    r"^\s*(?:drop\s+(?:function|table|type|view)|revoke)\b"
    r"|\balter\s+(?:table|function|type)\b[^;]*\b(?:drop|rename|set\s+not\s+null|type)\b",
    re.IGNORECASE | re.MULTILINE,
)


def takes_away(sql: str) -> list[str]:
    """The beginnings of statements that services of the version before may stumble over."""
    plain = re.sub(r"--[^\n]*", "", sql)
    return [" ".join(found[0].split()) for found in TAKES.finditer(plain)]


def test_migrations_remove_nothing() -> None:
    for file in (files("reverie.store") / "migrations").iterdir():
        if file.name.endswith(".sql"):
            assert takes_away(file.read_text()) == [], f"{file.name} takes away what may be in use"


def test_a_removal_is_told_from_an_addition() -> None:
    for sql in (
        "drop function remember(int);",
        "create table a (b int);\ndrop table c;",
        "alter table memory drop column summary;",
        "alter table memory\n  rename column summary to gist;",
        "alter table memory alter column tier type text;",
        "alter table memory alter column tier set not null;",
        "revoke select on memory from reverie_app;",
    ):
        assert takes_away(sql), sql
    for sql in (
        "alter table memory add column mood text;",
        "drop index edge_in; create index edge_in on edge (dst);",
        "create or replace function f() returns int language sql as 'select 1';",
        "-- drop table nothing;\ncreate table mood (tenant int);",
        "grant select on mood to reverie_app;",
    ):
        assert takes_away(sql) == [], sql

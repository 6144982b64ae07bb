"""Dumps are restored whole or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from reverie.domain.core.errors import Unavailable
from reverie.embedded.servers.binaries import find_postgres_bin
from reverie.store.db.dump import dump, restore
from reverie.testing.servers import DatabaseUrls
from tests.support.stack import eventually
from tests.support.store_setup import add_tenants, admin_rows


def _tenants(database: DatabaseUrls) -> set[str]:
    with psycopg.connect(database.admin_url) as connection:
        return {row[0] for row in connection.execute("select name from reverie.tenant")}


def _dump(database: DatabaseUrls, folder: Path) -> Path:
    """A dump of many tenants, after which another one came."""
    add_tenants(database.admin_url, "kept")
    many = "insert into tenant (name) select 'tenant-' || n from generate_series(1, 2000) n"
    admin_rows(database.admin_url, many)
    dump(database.admin_url, find_postgres_bin(), folder / "whole.dump")
    add_tenants(database.admin_url, "later")
    return folder / "whole.dump"


def test_a_dump_is_restored_whole_and_a_spoilt_one_changes_nothing(
    database: DatabaseUrls, tmp_path: Path
) -> None:
    file, spoilt = _dump(database, tmp_path), tmp_path / "spoilt.dump"
    data = file.read_bytes()
    for content in (data[:-2000], data[:-3000] + bytes(1000) + data[-2000:], b"no dump"):
        spoilt.write_bytes(content)
        with pytest.raises(Unavailable, match="nothing was changed"):
            restore(database.admin_url, find_postgres_bin(), spoilt)
        assert "later" in _tenants(database)
    restore(database.admin_url, find_postgres_bin(), file)
    assert "kept" in _tenants(database)
    assert "later" not in _tenants(database)


def test_a_dump_of_something_else_is_refused_and_nothing_is_lost(
    database: DatabaseUrls, tmp_path: Path
) -> None:
    add_tenants(database.admin_url, "later")
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("create schema other; create table other.thing (id int)")
    program = find_postgres_bin() / "pg_dump"
    options = ["--format=custom", "--schema=other", f"--file={tmp_path / 'other.dump'}"]
    subprocess.run([program, *options, f"--dbname={database.admin_url}"], check=True)
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("drop schema other cascade")
    with pytest.raises(Unavailable, match="no memories of Reverie"):
        restore(database.admin_url, find_postgres_bin(), tmp_path / "other.dump")
    assert "later" in _tenants(database)


def test_a_server_with_too_few_locks_is_told_the_setting(
    database: DatabaseUrls, tmp_path: Path
) -> None:
    file, programs = tmp_path / "whole.dump", tmp_path / "programs"
    dump(database.admin_url, find_postgres_bin(), file)
    programs.mkdir()
    (programs / "pg_restore").symlink_to(find_postgres_bin() / "pg_restore")
    refusing = programs / "psql"
    refusing.write_text("#!/bin/sh\necho 'ERROR:  out of shared memory' >&2\nexit 3\n")
    refusing.chmod(0o755)
    with pytest.raises(Unavailable, match=r"max_locks_per_transaction.*nothing was changed"):
        restore(database.admin_url, programs, file)


async def test_a_restore_killed_in_the_middle_leaves_what_was_there(
    database: DatabaseUrls, tmp_path: Path
) -> None:
    file, programs = _dump(database, tmp_path), tmp_path / "programs"
    programs.mkdir()
    (programs / "psql").symlink_to(find_postgres_bin() / "psql")
    slow = programs / "pg_restore"
    # It hands over all but the end, and then waits.
    slow.write_text(
        f'#!/bin/sh\n"{find_postgres_bin()}/pg_restore" "$@" | head -c 200000\nexec sleep 600\n'
    )
    slow.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from reverie.store.db.dump import restore;"
        "restore(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))"
    )
    arguments = ["-c", code, database.admin_url, str(programs), str(file)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, start_new_session=True
    )

    async def is_under_way() -> bool:
        assert process.returncode is None
        with psycopg.connect(database.admin_url) as connection:
            found = connection.execute(
                "select count(*) from pg_locks l join pg_class c on c.oid = l.relation"
                " join pg_stat_activity a on a.pid = l.pid and a.application_name = 'psql'"
                " where l.mode = 'AccessExclusiveLock' and c.relname = 'tenant'"
                # Copies of the template have the same numbers of tables.
                " and a.datname = current_database()"
            ).fetchone()
        return bool(found and found[0])

    try:
        await eventually(is_under_way)
    finally:
        process.kill()
        await process.wait()
    assert "later" in _tenants(database)
    os.killpg(process.pid, signal.SIGKILL)

"""Dumps and restores the whole schema with pg_dump and pg_restore."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg

from reverie.domain.core.errors import Conflict, Unavailable
from reverie.store.db.migrate import migrate
from reverie.store.db.roles import SCHEMA

_Command = list[Path | str]
_APPLICATION_NAME = "reverie"
"""The application name of the services at the server."""
_RESTORE_LOCKS = 256
"""Locks for each connection that Postgres may have: of 100, a restore needs 150 for each."""
_BEGIN_AND_DROP = f"""
begin;
set local client_min_messages = warning;
create temp table current_key on commit drop as
  select t.name as tenant, k.id, k.hash, k.old_hash, k.previous_expires_at, k.expires_at, k.revoked
  from {SCHEMA}.api_key k join {SCHEMA}.tenant t on t.id = k.tenant;
create temp table current_retired_key on commit drop as select hash from {SCHEMA}.retired_key;
drop schema if exists {SCHEMA} cascade;
"""  # noqa: S608 (the schema is ours)
_CHECK_AND_COMMIT = f"""
do $$ begin
  if to_regclass('{SCHEMA}.memory') is null then
    raise exception 'the dump holds no memories of Reverie';
  end if;
end $$;
set local row_security = on;
insert into {SCHEMA}.retired_key
  select hash from pg_temp.current_retired_key on conflict do nothing;
update {SCHEMA}.api_key k set
  hash = c.hash, old_hash = c.old_hash, previous_expires_at = c.previous_expires_at,
  expires_at = c.expires_at, revoked = c.revoked
from pg_temp.current_key c join {SCHEMA}.tenant t on t.name = c.tenant
where k.tenant = t.id and k.id = c.id;
commit;
"""  # noqa: S608
"""Keys stay as they are now: an older text of a key must not become valid again."""


def dump(url: str, programs: Path, file: Path) -> None:
    """Writes the schema with all its rows, as of one moment, while services go on.

    `programs`: the folder of the server's version of `pg_dump`. The user must see past row-level
    security. Raises `Unavailable`.
    """
    arguments = ["--format=custom", f"--schema={SCHEMA}", f"--file={file}"]
    _run_program(programs / "pg_dump", arguments, url)


def restore(url: str, programs: Path, file: Path) -> list[str]:
    """Puts what was dumped in place of the schema, then brings it up to date; what was applied.

    Whole or not at all: one transaction drops the schema and loads the dump, and is committed only
    if `pg_restore` read the file to its end. Raises `Conflict` while services are connected, and
    `Unavailable`. Keys that exist keep their current text, expiry and revocation.
    """
    # Roles and the extension belong to the server and are in no dump.
    migrate(url)
    check_no_services(url)
    reader_command: _Command = [programs / "pg_restore", "--file=-", str(file)]
    address, environment = _split_password(url)
    writer_command: _Command = [
        programs / "psql",
        "--no-psqlrc",
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        address,
    ]
    with (
        _open_log() as reader_log,
        _open_log() as writer_log,
        _start(reader_command, environment, stdout=subprocess.PIPE, stderr=reader_log) as reader,
        _start(
            writer_command,
            environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=writer_log,
        ) as writer,
    ):
        assert reader.stdout is not None
        assert writer.stdin is not None
        # If psql fails, the pipe breaks; its message says why.
        with suppress(BrokenPipeError):
            writer.stdin.write(_BEGIN_AND_DROP.encode())
            shutil.copyfileobj(reader.stdout, writer.stdin)
            # psql takes the end of its input for the end of a cut dump: only this commits.
            if reader.wait() == 0:
                writer.stdin.write(_CHECK_AND_COMMIT.encode())
        reader.stdout.close()
        with suppress(BrokenPipeError):
            writer.stdin.close()
        if writer.wait() or reader.wait():
            failed, log = ("psql", writer_log) if writer.returncode else ("pg_restore", reader_log)
            message = _first_line(log)
            if "out of shared memory" in message:
                message += f": start Postgres with max_locks_per_transaction = {_RESTORE_LOCKS}"
            raise Unavailable(failed, f"{message}; nothing was changed")
    return migrate(url)


def check_no_services(url: str) -> None:
    """Raises `Conflict` while services are connected."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        found = connection.execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and application_name = %s",
            (_APPLICATION_NAME,),
        ).fetchone()
    if found and found[0]:
        raise Conflict("services are connected to this database: stop them first")


def _run_program(program: Path, arguments: list[str], url: str) -> None:
    address, environment = _split_password(url)
    command: _Command = [program, *arguments, f"--dbname={address}"]
    with _open_log() as log:
        with _start(command, environment, stdout=subprocess.DEVNULL, stderr=log) as process:
            failed = process.wait()
        if failed:
            message = _first_line(log)
            if "row-level security" in message:
                message += ": back up as a superuser, or as a role with bypassrls"
            raise Unavailable(program.name, message)


def _start(
    command: _Command, environment: dict[str, str], **streams: Any
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 (the arguments are ours)
            command, env=environment, **{"stdin": subprocess.DEVNULL, **streams}
        )
    except OSError as error:
        program = Path(command[0])
        raise Unavailable(program.name, f"{program} does not run: set postgres_bin") from error


def _split_password(url: str) -> tuple[str, dict[str, str]]:
    """The URL without its password, and the environment with it: arguments are for all to see."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = (parts.username or "") + "@" if parts.username else ""
    password = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
    return urlunsplit(parts._replace(netloc=user + host)), {**os.environ, **password}


def _open_log() -> IO[bytes]:
    """A file for messages: a pipe that nobody empties would stop the program."""
    return tempfile.TemporaryFile()


def _first_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read(10_000).decode(errors="replace").strip().splitlines()
    return lines[0] if lines else "it said nothing"

"""Starts a Postgres primary with a streaming replica."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from reverie.embedded.home import Home, open_home
from reverie.embedded.servers import postgres
from reverie.store.db.migrate import migrate
from reverie.testing.servers import UNSAFE_OPTIONS, DatabaseUrls, TestRun

OPTIONS = {**UNSAFE_OPTIONS, "max_connections": "60", "wal_level": "replica", "hot_standby": "on"}
# What was committed but not flushed yet is not sent to a replica: a test would wait for it.
OPTIONS["synchronous_commit"] = "on"


@dataclass
class ReplicatedPostgres:
    """The primary's database as the fixture `database` has it, and the replica beside it."""

    database: DatabaseUrls
    replica: postgres.PostgresInstance
    home: Home
    primary: str

    @property
    def read_url(self) -> str:
        """Where services read."""
        return self.replica.reader_url()

    def execute(self, statement: str) -> None:
        """Runs a statement on the replica, as its operator."""
        with psycopg.connect(self.replica.admin_url(), autocommit=True) as db:
            db.execute(statement.encode())

    def follow(self, primary: str) -> None:
        """Sets the server that the replica streams from; empty stops the streaming."""
        self.execute(f"alter system set primary_conninfo = '{primary}'")
        self.execute("select pg_reload_conf()")

    def stop(self) -> None:
        """Stops the replica."""
        postgres.stop(self.replica)

    def start(self) -> None:
        """Starts the replica again on the same port."""
        spec = postgres.PostgresSpec(self.home, self.replica.port, options=OPTIONS)
        self.replica = postgres.start(spec)


@contextmanager
def start_replicated_postgres(run: TestRun) -> Iterator[ReplicatedPostgres]:
    """A migrated primary and a replica that streams from it."""
    home = open_home(run.new_folder("primary"))
    primary = postgres.start(postgres.PostgresSpec(home, options=OPTIONS))
    migrate(f"{primary.admin_url()}&options=-creverie.partitions%3D{run.partitions}")
    postgres.create_service_logins(primary)
    postgres.stop(primary)
    options = f"user={postgres.ADMIN} password={primary.password} host={primary.host}"
    conninfo = f"{options} port={primary.port}"
    other = copy_as_standby(home, run.new_folder("replica"), conninfo)
    primary = postgres.start(postgres.PostgresSpec(home, primary.port, options=OPTIONS))
    replica = postgres.start(postgres.PostgresSpec(other, options=OPTIONS))
    urls = primary.admin_url(), primary.service_url(), primary.reader_url()
    database = DatabaseUrls(postgres.DATABASE, *urls)
    pair = ReplicatedPostgres(database, replica, other, conninfo)
    try:
        yield pair
    finally:
        postgres.stop(pair.replica)
        postgres.stop(primary)


def copy_as_standby(home: Home, root: Path, conninfo: str) -> Home:
    """The data and passwords of a stopped server, made to follow it."""
    other = open_home(root)
    for name in ("postgres", "secrets"):
        target = root / name
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", str(home.root / name), str(target)], check=True)
    signal, conf = other.postgres / "standby.signal", other.postgres / "postgresql.auto.conf"
    signal.touch()
    with conf.open("a") as file:
        file.write(f"primary_conninfo = '{conninfo}'\n")
    subprocess.run(["chown", f"--reference={conf}", str(signal)], check=True)
    return other

"""Real Postgres and NATS servers for tests: one Postgres per test run, one NATS per test.

A test run owns one folder below the system's temporary folder. Each of its processes holds a shared
lock in it. A janitor process waits for the exclusive lock, which the kernel grants when the last of
them has ended; then it stops every server of the run and removes the folder.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

import psutil  # type: ignore[import-untyped]

from reverie.embedded import processes
from reverie.embedded.home import Home, open_home
from reverie.embedded.servers import nats, postgres
from reverie.store.db import server_admin
from reverie.store.db.migrate import migrate

UNSAFE_OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "10min",
    # To drop a database waits for every connection, also for one whose client is paused midway.
    "authentication_timeout": "10s",
    "dynamic_shared_memory_type": "mmap",
    "scram_iterations": "1",
}
"""Postgres for data that nobody will miss."""

SHM = Path("/dev/shm")  # noqa: S108
MIN_SHM_BYTES = 4 * 1024**3
"""Bytes of shared memory from which on the data of tests is kept there."""

TEMPLATE_DATABASE = "reverie_template"


@dataclass(frozen=True)
class TestRun:
    """The folder of a test run, shared by all of its processes."""

    __test__ = False
    folder: Path
    partitions: int = 16
    """How many each table of a fresh database has: few are copied and planned sooner."""

    @property
    def data(self) -> Path:
        """Where servers and tests write: in memory if there is room, 20 times as fast."""
        has_room = (
            SHM.is_dir()
            and shutil.disk_usage(SHM).total >= MIN_SHM_BYTES
            and os.access(SHM, os.W_OK)
            # Tests put programs into their folders.
            and not os.statvfs(SHM).f_flag & os.ST_NOEXEC
        )
        return SHM / self.folder.name if has_room else self.folder

    @property
    def postgres_home(self) -> Path:
        """Home of the run's one Postgres."""
        return self.data / "server"

    def new_folder(self, name: str, *, on_disk: bool = False) -> Path:
        """A fresh folder that goes when the run ends; any user may walk through it."""
        parent = self.folder if on_disk else self.data
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
        folder.chmod(0o711)
        return folder


def create_run() -> TestRun:
    """Begin a test run."""
    run = TestRun(Path(tempfile.mkdtemp(prefix="reverie-test-")).resolve())
    run.data.mkdir(exist_ok=True)
    for folder in (run.folder, run.data):
        folder.chmod(0o711)
    return run


def join_run(run: TestRun) -> int:
    """Joins the run until the returned descriptor is closed."""
    fd = os.open(run.folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def end_run(run: TestRun) -> None:
    """Wait until the janitor has cleared the run away, or remove what there is."""
    pid = _read_janitor_pid(run)
    if pid is None:
        _remove(run)
        return
    try:
        psutil.Process(pid).wait(20)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        return


@contextmanager
def open_run() -> Iterator[TestRun]:
    """A run of this process alone."""
    run = create_run()
    fd = join_run(run)
    try:
        yield run
    finally:
        os.close(fd)
        end_run(run)


@contextmanager
def _exclusive(run: TestRun, name: str) -> Iterator[None]:
    """Only one process of the run at a time."""
    with (run.folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read_janitor_pid(run: TestRun) -> int | None:
    pid_file = run.folder / "janitor.pid"
    return int(pid_file.read_text()) if pid_file.exists() else None


def _ensure_janitor(run: TestRun) -> None:
    with _exclusive(run, "janitor"):
        if _read_janitor_pid(run) is None:
            command = [sys.executable, "-m", __name__, "janitor", str(run.folder)]
            pid = os.posix_spawn(command[0], command, os.environ, setsid=True)
            (run.folder / "janitor.pid").write_text(str(pid))


def ensure_postgres(run: TestRun) -> postgres.PostgresInstance:
    """The run's Postgres; the first caller starts it."""
    _ensure_janitor(run)
    home = open_home(run.postgres_home)
    with _exclusive(run, "postgres"):
        server = postgres.find(home)
        if server is None:
            # Through a process in between, so that the server is nobody's child here.
            command = [sys.executable, "-m", __name__, "postgres", str(run.folder)]
            subprocess.run(command, check=True)  # noqa: S603
            server = postgres.find(home)
    if server is None:
        raise RuntimeError(f"no Postgres: {processes.read_last_lines(home.logs / 'postgres.log')}")
    return server


@dataclass(frozen=True)
class DatabaseUrls:
    """A database of a test's own: migrated, empty, with the URLs of its roles."""

    name: str
    admin_url: str
    service_url: str
    reader_url: str


def _describe_database(name: str, server: postgres.PostgresInstance) -> DatabaseUrls:
    urls = server.admin_url(name), server.service_url(name), server.reader_url(name)
    return DatabaseUrls(name, *urls)


@cache
def _get_copier(admin_url: str) -> server_admin.DatabaseCopier:
    """One for each server: connecting takes a while."""
    copier = server_admin.DatabaseCopier(admin_url)
    atexit.register(copier.close)
    return copier


@contextmanager
def fresh_database(run: TestRun) -> Iterator[DatabaseUrls]:
    """A copy of the migrated template; afterwards it is dropped, and its connections are closed."""
    server = ensure_postgres(run)
    _ensure_template(run, server)
    name = f"t_{uuid4().hex[:12]}"
    copier = _get_copier(server.admin_url("postgres"))
    copier.copy(name, TEMPLATE_DATABASE)
    try:
        yield _describe_database(name, server)
    finally:
        copier.drop(name)


@contextmanager
def empty_database(run: TestRun) -> Iterator[DatabaseUrls]:
    """A database without any table, for tests of the migrations themselves."""
    server = ensure_postgres(run)
    name = f"e_{uuid4().hex[:12]}"
    server_admin.ensure_database(server.admin_url("postgres"), name)
    try:
        yield _describe_database(name, server)
    finally:
        _get_copier(server.admin_url("postgres")).drop(name)


def _ensure_template(run: TestRun, server: postgres.PostgresInstance) -> None:
    marker = run.folder / "template.done"
    if marker.exists():
        return
    with _exclusive(run, "template"):
        if marker.exists():
            return
        _get_copier(server.admin_url("postgres")).drop(TEMPLATE_DATABASE)
        server_admin.ensure_database(server.admin_url("postgres"), TEMPLATE_DATABASE)
        option = f"&options=-creverie.partitions%3D{run.partitions}"
        migrate(server.admin_url(TEMPLATE_DATABASE) + option)
        postgres.create_service_logins(server, TEMPLATE_DATABASE)
        marker.touch()


class NatsServer:
    """A NATS with JetStream that a test may stop, kill and start again on the same port."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._server = nats.start(nats.NatsSpec(home))

    @property
    def url(self) -> str:
        """The URL for clients; the same after a restart."""
        return self._server.url

    def start(self) -> None:
        """Start again on the same port and store."""
        self._server = nats.start(nats.NatsSpec(self.home, self._server.port))

    def stop(self) -> None:
        """End in order."""
        nats.stop(self._server)

    def kill(self) -> None:
        """End as by a power cut."""
        processes.stop(self._server.pid, [(signal.SIGKILL, 5.0)], self._server.child)


@contextmanager
def own_nats(run: TestRun) -> Iterator[NatsServer]:
    """A NATS of a test's own (about 30 ms)."""
    _ensure_janitor(run)
    folder = run.new_folder("nats")
    server = NatsServer(open_home(folder))
    try:
        yield server
    finally:
        # A clean shutdown takes seven times as long, for a store that is discarded.
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _start_postgres(run: TestRun) -> None:
    postgres.start(postgres.PostgresSpec(open_home(run.postgres_home), options=UNSAFE_OPTIONS))


def _clean_up_when_unused(run: TestRun) -> None:
    with (run.folder / "users.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for pid in _list_server_pids(run):
            processes.stop(pid, [(signal.SIGQUIT, 3.0), (signal.SIGKILL, 2.0)])
        _remove(run)


def _remove(run: TestRun) -> None:
    for folder in (run.data, run.folder):
        shutil.rmtree(folder, ignore_errors=True)


def _list_server_pids(run: TestRun) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter()
        if process.pid != os.getpid() and processes.is_running(process.pid, run.folder.name)
    ]


def main(role: str, folder: str) -> None:
    """`python -m reverie.testing.servers janitor|postgres FOLDER`."""
    run = TestRun(Path(folder))
    {"janitor": _clean_up_when_unused, "postgres": _start_postgres}[role](run)


if __name__ == "__main__":
    main(*sys.argv[1:])

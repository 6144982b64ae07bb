"""Postgres as a child process: made on first use, adopted when it survived its parent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from reverie.domain.errors import Misconfigured, Unavailable
from reverie.embedded import binaries, ports, privileges, processes
from reverie.embedded.home import Home, read_note, secret, write_note
from reverie.runtime.machine import memory_bytes
from reverie.store import admin

ADMIN = "reverie"
SERVICE = "reverie_service"
READER = "reverie_reader"
DATABASE = "reverie"

INITDB = (
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--auth=scram-sha-256",
    f"--username={ADMIN}",
)
LAPTOP = {
    "max_connections": "100",
    # Rows of many tenants lie among each other: those of one are found faster by an index.
    "random_page_cost": "1.1",
    # A store that fills fast is planned badly until its statistics are taken.
    "autovacuum_naptime": "10s",
    "max_parallel_maintenance_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
    "unix_socket_directories": "",
}
BUFFERS = 1 / 16
"""The share of the memory for pages that are read again and again, taken as there are so many."""
BUFFERS_MB = (128, 2048)
"""The least and the most of it, in mebibytes."""
SMALL_SHM = 256 * 1024 * 1024
"""Bytes of /dev/shm below which shared memory is taken from files."""

STOPS = ((signal.SIGINT, 2.5), (signal.SIGQUIT, 0.7), (signal.SIGKILL, 0.5))
"""Fast shutdown, then immediate shutdown, then the kernel; seconds for each."""


@dataclass(frozen=True)
class PostgresSpec:
    """Which Postgres to run. A port of 0 means any free one."""

    home: Home
    port: int = 0
    host: str = ports.LOOPBACK
    bin: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Postgres:
    """A running Postgres; `adopted` when it was found running."""

    pid: int
    host: str
    port: int
    adopted: bool
    password: str = field(repr=False)
    service_password: str = field(repr=False)
    reader_password: str = field(repr=False)
    child: processes.Child | None = field(default=None, repr=False, compare=False)

    def admin_url(self, database: str = DATABASE) -> str:
        """The URL for migrations: a superuser."""
        return self._url(ADMIN, self.password, database)

    def service_url(self, database: str = DATABASE) -> str:
        """The URL for the services: bound by row-level security."""
        return self._url(SERVICE, self.service_password, database)

    def reader_url(self, database: str = DATABASE) -> str:
        """The URL for recall's reads: as the services', and it may write nothing."""
        return self._url(READER, self.reader_password, database)

    def _url(self, user: str, password: str, database: str) -> str:
        # Without TLS nothing is looked for in a home folder, which may be another's.
        where = f"{self.host}:{self.port}/{database}?sslmode=disable"
        return f"postgresql://{user}:{password}@{where}"


def start(spec: PostgresSpec) -> Postgres:
    """Adopt the server that runs on this data, or start one. Answers when it takes queries.

    Raises `Misconfigured` (binaries, privileges) and `Unavailable` (it does not come up).
    """
    found = find(spec.home)
    if found is not None:
        if admin.answers(found.admin_url("postgres")):
            return found
        stop(found)
    # Right after kill -9 the old server's children may hold its shared memory for a moment,
    # and a port that was free may be gone: both pass.
    again = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_delay(15),
        wait=wait_fixed(0.3),
        reraise=True,
    )
    return again(_start, spec)


def find(home: Home) -> Postgres | None:
    """The server that runs on this data now, whoever started it."""
    lines = _postmaster(home)
    if len(lines) < 4 or not processes.runs(int(lines[0]), "postgres", str(home.postgres)):
        return None
    host = lines[5] if len(lines) > 5 and lines[5] not in {"", "*"} else ports.LOOPBACK
    return _described(home, int(lines[0]), host, int(lines[3]))


def stop(server: Postgres) -> None:
    """End the server: sessions are cut, what was committed is on disk. At most 3.7 seconds."""
    processes.stop(server.pid, STOPS, server.child)


def running(server: Postgres) -> bool:
    """Whether the server's process is there."""
    child = server.child
    return child.poll() is None if child else processes.alive(server.pid)


def allow_services(server: Postgres, database: str = DATABASE) -> None:
    """Make the roles that services log in as. The migrations must have made whom they belong to."""
    url = server.admin_url(database)
    admin.ensure_login(url, SERVICE, server.service_password, admin.APP_ROLE)
    admin.ensure_login(url, READER, server.reader_password, admin.READ_ROLE)


def _described(home: Home, pid: int, host: str, port: int) -> Postgres:
    own, service, reader = (secret(home, f"postgres-{w}") for w in ("admin", "service", "reader"))
    return Postgres(pid, host, port, True, own, service, reader)


def _start(spec: PostgresSpec) -> Postgres:
    who = privileges.run_as(spec.home.postgres)
    folder = _readable(binaries.postgres_bin(spec.bin), spec.home, who)
    if not (spec.home.postgres / "PG_VERSION").exists():
        _initialise(folder, spec.home, who)
    _drop_foreign_pid(spec.home)
    noted = int(read_note(spec.home, "postgres").get("port", 0))
    port = ports.choose_again(spec.port, noted, spec.host)
    child = _spawn(folder, spec, port, who)
    log = spec.home.logs / "postgres.log"
    processes.await_ready(child, lambda: _ready(spec.home, child.pid), "Postgres", log)
    server = replace(_described(spec.home, child.pid, spec.host, port), child=child, adopted=False)
    _ensure_database(server, spec.home)
    write_note(spec.home, "postgres", {"pid": child.pid, "port": port})
    return server


def _readable(folder: Path, home: Home, who: privileges.RunAs) -> Path:
    """The folder of binaries, or a copy of it where the child could not run them."""
    if who.uid is None or who.gid is None:
        return folder
    reached = who.passes_closed_folders or privileges.reachable(folder, who.uid, who.gid)
    if reached and privileges.may_run(folder / "postgres", who.uid, who.gid):
        return folder
    return binaries.copy_postgres(folder, home.bin)


def _initialise(folder: Path, home: Home, who: privileges.RunAs) -> None:
    # Beside the final place, then renamed: a crash leaves no half-made data folder.
    fresh, words = home.root / "postgres.new", home.run / "initdb-password"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    words.unlink(missing_ok=True)
    words.touch(0o600)
    words.write_text(secret(home, "postgres-admin"))
    who.give(fresh)
    who.give(words)
    try:
        _run(folder / "initdb", [f"--pwfile={words}", "-D", str(fresh), *INITDB], who)
    finally:
        words.unlink()
    if home.postgres.is_dir():
        home.postgres.rmdir()
    fresh.rename(home.postgres)


def _run(program: Path, arguments: list[str], who: privileges.RunAs) -> None:
    done = subprocess.run(
        [*who.prefix, str(program), *arguments],
        cwd="/",
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **who.options(),
    )
    if done.returncode:
        raise Unavailable("Postgres", f"{program.name} failed: {_last_line(done.stderr)}")


def _spawn(folder: Path, spec: PostgresSpec, port: int, who: privileges.RunAs) -> processes.Child:
    options = LAPTOP | {"shared_buffers": _buffers()} | _shared_memory() | dict(spec.options)
    options |= {"listen_addresses": spec.host, "port": str(port)}
    flags = [f for k, v in options.items() for f in ("-c", f"{k}={v}")]
    return processes.spawn(
        [*who.prefix, str(folder / "postgres"), "-D", str(spec.home.postgres), *flags],
        spec.home.logs / "postgres.log",
        env=_environment(),
        options=who.options(),
    )


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _buffers() -> str:
    """By the memory of the machine, or of the container: more spares fetching pages anew."""
    least, most = BUFFERS_MB
    return f"{min(max(int(memory_bytes() * BUFFERS) >> 20, least), most)}MB"


def _shared_memory() -> dict[str, str]:
    shm = Path("/dev/shm")  # noqa: S108
    if shm.is_dir() and shutil.disk_usage(shm).free < SMALL_SHM:
        return {"dynamic_shared_memory_type": "mmap"}
    return {}


def _ready(home: Home, pid: int) -> bool:
    lines = _postmaster(home)
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7] == "ready"


def _ensure_database(server: Postgres, home: Home) -> None:
    try:
        admin.ensure_database(server.admin_url("postgres"), DATABASE)
    except BaseException as e:
        stop(server)
        if isinstance(e, Unavailable) and "authentication failed" in e.hint:
            raise _locked_out(home) from None
        raise


def _locked_out(home: Home) -> Misconfigured:
    words = home.secrets / "postgres-admin"
    return Misconfigured(
        "REVERIE_HOME",
        f"the password in {words} is not that of the data in {home.postgres}: put back the "
        "folder of secrets that belongs to it",
    )


def _postmaster(home: Home) -> list[str]:
    try:
        text = (home.postgres / "postmaster.pid").read_text()
    except (FileNotFoundError, NotADirectoryError):
        return []
    lines = [line.strip() for line in text.splitlines()]
    return lines if lines and lines[0].isdigit() else []


def _drop_foreign_pid(home: Home) -> None:
    # Postgres takes any process of that number for itself: another program after a reboot, or
    # its own zombie below an init that does not reap.
    lines = _postmaster(home)
    if not lines or not processes.listed(int(lines[0])):
        return
    if not processes.runs(int(lines[0]), "postgres", str(home.postgres)):
        (home.postgres / "postmaster.pid").unlink()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]

"""Runs Postgres as a child process; a server that survived its parent is adopted.

The database driver is imported where a server starts: who only looks after one needs none.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.embedded import ports, privileges, processes
from reverie.embedded.home import Home, get_or_create_secret, read_run_file, write_run_file
from reverie.embedded.servers import binaries
from reverie.runtime.process.system_resources import memory_bytes
from reverie.store.db.roles import APP_ROLE, READ_ROLE

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
DEFAULT_OPTIONS = {
    "max_connections": "100",
    # A restore takes 15,000 locks: it drops and makes every table, partition and index at once.
    "max_locks_per_transaction": "256",
    # Rows of many tenants are mixed in the tables: an index finds those of one faster.
    "random_page_cost": "1.1",
    # A store that fills fast is planned badly until its statistics are taken.
    "autovacuum_naptime": "10s",
    "max_parallel_maintenance_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
    "unix_socket_directories": "",
}
SHARED_BUFFERS_MB = 48, 2048
"""The least and the most memory for pages that are read again and again, in mebibytes."""
FIRST_WITH_IO_WORKERS = 18
"""The version of Postgres since which processes of their own read and write for sessions."""
SMALL_SHM = 256 * 1024 * 1024
"""Bytes of /dev/shm below which shared memory is taken from files."""

STOP_SIGNALS = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 0.7), (signal.SIGKILL, 0.5))
"""Fast shutdown, then immediate shutdown, then the kernel; seconds for each.

A fast shutdown writes what changed to disk. If it is cut short, the next start has to recover."""


@dataclass(frozen=True)
class PostgresSpec:
    """Which Postgres to run. A port of 0 means any free one."""

    home: Home
    port: int = 0
    host: str = ports.LOOPBACK
    bin: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PostgresInstance:
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
        location = f"{self.host}:{self.port}/{database}?sslmode=disable"
        return f"postgresql://{user}:{password}@{location}"


def start(spec: PostgresSpec) -> PostgresInstance:
    """Adopts the server that runs on this data, or starts one. Returns when it accepts queries.

    Raises `Misconfigured` (binaries, privileges) and `Unavailable` (it does not start).
    """
    from reverie.store.db import server_admin

    existing = find(spec.home)
    if existing is not None:
        if server_admin.is_reachable(existing.admin_url("postgres")):
            return existing
        stop(existing)
    # Right after kill -9 the old server's children may hold its shared memory for a moment, and a
    # port that was free may be in use: a retry solves both.
    retrying = Retrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_delay(15),
        wait=wait_fixed(0.3),
        reraise=True,
    )
    return retrying(_start_new, spec)


def find(home: Home) -> PostgresInstance | None:
    """The server that runs on this data now, if this process started it or not."""
    lines = _read_postmaster_file(home)
    if len(lines) < 4 or not processes.is_running(int(lines[0]), "postgres", str(home.postgres)):
        return None
    host = lines[5] if len(lines) > 5 and lines[5] not in {"", "*"} else ports.LOOPBACK
    return _describe_instance(home, int(lines[0]), host, int(lines[3]))


def stop(server: PostgresInstance) -> None:
    """End the server: sessions are cut, what was committed is on disk. At most 21 seconds."""
    processes.stop(server.pid, STOP_SIGNALS, server.child)


def create_service_logins(server: PostgresInstance, database: str = DATABASE) -> None:
    """Creates the login roles of services. The migrations must have created their group roles."""
    from reverie.store.db import server_admin

    url = server.admin_url(database)
    server_admin.ensure_login(url, SERVICE, server.service_password, APP_ROLE)
    server_admin.ensure_login(url, READER, server.reader_password, READ_ROLE)


def _describe_instance(home: Home, pid: int, host: str, port: int) -> PostgresInstance:
    admin_password, service_password, reader_password = (
        get_or_create_secret(home, f"postgres-{role}") for role in ("admin", "service", "reader")
    )
    return PostgresInstance(
        pid, host, port, True, admin_password, service_password, reader_password
    )


def _start_new(spec: PostgresSpec) -> PostgresInstance:
    account = privileges.choose_account(spec.home.postgres)
    folder = _ensure_runnable(binaries.find_postgres_bin(spec.bin), spec.home, account)
    if not (spec.home.postgres / "PG_VERSION").exists():
        _initialize_data(folder, spec.home, account)
    _remove_stale_pid_file(spec.home)
    previous_port = int(read_run_file(spec.home, "postgres").get("port", 0))
    port = ports.choose_same_port(spec.port, previous_port, spec.host)
    child = _spawn(folder, spec, port, account)
    log = spec.home.logs / "postgres.log"
    processes.wait_until_ready(child, lambda: _is_ready(spec.home, child.pid), "Postgres", log)
    server = replace(
        _describe_instance(spec.home, child.pid, spec.host, port), child=child, adopted=False
    )
    _ensure_database(server, spec.home)
    write_run_file(spec.home, "postgres", {"pid": child.pid, "port": port})
    return server


def _ensure_runnable(folder: Path, home: Home, account: privileges.RunAccount) -> Path:
    """Returns the folder of binaries, or a copy of it if the child could not run them."""
    if account.uid is None or account.gid is None:
        return folder
    is_reachable = account.passes_closed_folders or privileges.is_reachable(
        folder, account.uid, account.gid
    )
    if is_reachable and privileges.is_executable(folder / "postgres", account.uid, account.gid):
        return folder
    return binaries.copy_postgres(folder, home.bin)


def _initialize_data(folder: Path, home: Home, account: privileges.RunAccount) -> None:
    # Created next to the final path, then renamed: a crash leaves no incomplete data folder.
    new_folder, password_file = home.root / "postgres.new", home.run / "initdb-password"
    shutil.rmtree(new_folder, ignore_errors=True)
    new_folder.mkdir(mode=0o700)
    password_file.unlink(missing_ok=True)
    password_file.touch(0o600)
    password_file.write_text(get_or_create_secret(home, "postgres-admin"))
    account.make_owner(new_folder)
    account.make_owner(password_file)
    try:
        _run_program(
            folder / "initdb",
            [f"--pwfile={password_file}", "-D", str(new_folder), *INITDB],
            account,
        )
    finally:
        password_file.unlink()
    if home.postgres.is_dir():
        home.postgres.rmdir()
    new_folder.rename(home.postgres)


def _run_program(program: Path, arguments: list[str], account: privileges.RunAccount) -> None:
    result = subprocess.run(
        [*account.prefix, str(program), *arguments],
        cwd="/",
        env=_child_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **account.options(),
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["it said nothing"]
        raise Unavailable("Postgres", f"{program.name} failed: {lines[-1]}")


def _spawn(
    folder: Path, spec: PostgresSpec, port: int, account: privileges.RunAccount
) -> subprocess.Popen[bytes]:
    options = (
        DEFAULT_OPTIONS
        | {"shared_buffers": _shared_buffers(spec.home)}
        | _shared_memory_options()
        | _reading_options(spec.home)
        | dict(spec.options)
    )
    options |= {"listen_addresses": spec.host, "port": str(port)}
    flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
    return processes.spawn(
        [*account.prefix, str(folder / "postgres"), "-D", str(spec.home.postgres), *flags],
        spec.home.logs / "postgres.log",
        env=_child_environment(),
        options=account.options(),
    )


def _child_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _shared_buffers(home: Home) -> str:
    """Returns the buffer size: half of the stored data, at most a sixteenth of the memory.

    Other pages come from the file cache of the system.
    """
    stored = sum(file.stat().st_size for file in (home.postgres / "base").glob("*/*"))
    minimum, maximum = SHARED_BUFFERS_MB
    megabytes = min(stored // 2, memory_bytes() // 16) >> 20
    return f"{min(max(megabytes, minimum), maximum)}MB"


def _shared_memory_options() -> dict[str, str]:
    shm = Path("/dev/shm")  # noqa: S108
    # Other systems than Linux have no such folder, and no such limit.
    if shm.is_dir() and shutil.disk_usage(shm).free < SMALL_SHM:
        return {"dynamic_shared_memory_type": "mmap"}
    return {}


def _reading_options(home: Home) -> dict[str, str]:
    """Lets each session read for itself: processes that read for it take 8 MB each."""
    version = (home.postgres / "PG_VERSION").read_text().strip()
    return {"io_method": "sync"} if int(version) >= FIRST_WITH_IO_WORKERS else {}


def _is_ready(home: Home, pid: int) -> bool:
    lines = _read_postmaster_file(home)
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7] == "ready"


def _ensure_database(server: PostgresInstance, home: Home) -> None:
    from reverie.store.db import server_admin

    try:
        server_admin.ensure_database(server.admin_url("postgres"), DATABASE)
    except BaseException as error:
        stop(server)
        if isinstance(error, Unavailable) and "authentication failed" in error.hint:
            raise _wrong_password_error(home) from None
        raise


def _wrong_password_error(home: Home) -> Misconfigured:
    password_file = home.secrets / "postgres-admin"
    return Misconfigured(
        "REVERIE_HOME",
        f"the password in {password_file} is not that of the data in {home.postgres}: put back the "
        "folder of secrets that belongs to it",
    )


def _read_postmaster_file(home: Home) -> list[str]:
    try:
        text = (home.postgres / "postmaster.pid").read_text()
    except (FileNotFoundError, NotADirectoryError):
        return []
    lines = [line.strip() for line in text.splitlines()]
    return lines if lines and lines[0].isdigit() else []


def _remove_stale_pid_file(home: Home) -> None:
    # Postgres treats any process with that number as itself: another program after a reboot, or its
    # own zombie below an init that does not wait for children.
    lines = _read_postmaster_file(home)
    if not lines or not psutil.pid_exists(int(lines[0])):
        return
    if not processes.is_running(int(lines[0]), "postgres", str(home.postgres)):
        (home.postgres / "postmaster.pid").unlink()

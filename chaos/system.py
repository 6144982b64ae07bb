"""The whole system under `reverie up`, on servers that faults are injected into."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg
from tenacity import retry, stop_after_attempt, wait_fixed

from chaos.faulty_embedder import Embeddings, embeddings
from reverie.cli.operate.reindex import reembed_tenants
from reverie.domain.access.principals import KeyRole
from reverie.embedded import processes
from reverie.embedded.home import Home, open_home
from reverie.embedded.servers import postgres
from reverie.runtime.settings.settings import Settings
from reverie.store.db.migrate import migrate
from reverie.store.platform.api_keys import NewApiKey, create_key, list_tenants
from reverie.testing.chaos_proxy import ChaosProxy
from reverie.testing.models import model_home
from reverie.testing.servers import (
    UNSAFE_OPTIONS,
    NatsServer,
    TestRun,
    ensure_postgres,
    fresh_database,
)
from tests.support.external_servers import Cluster, nats_cluster
from tests.support.proxies import at_port, port_of
from tests.support.replica_servers import copy_as_standby
from tests.support.reverie_up import ANY_PORT, Up

_IN_EARNEST = {"synchronous_commit", "autovacuum_naptime"}
"""Statistics too: a store that fills for minutes without them is planned worse and worse."""
OPTIONS = {
    **{key: value for key, value in UNSAFE_OPTIONS.items() if key not in _IN_EARNEST},
    "max_wal_size": "96MB",
    "wal_level": "replica",
    "hot_standby": "on",
}
"""A process that is killed loses nothing by these; a power cut would."""
SETTINGS = (
    "grpc_enabled=false", "log_level=warning", "outbox_sweep_after=1", "scheduler_interval=1",
    "worker_lease=3", "key_cache_ttl=5",
)  # fmt: skip
DREAM_SOON: LiteralString = """
insert into project_setting (tenant, project, name, value)
select id, '*', 'dream', '{"idle_minutes": 0.1}' from tenant
on conflict (tenant, project, name) do update set value = excluded.value
"""
"""Every tenant dreams of a session that is silent for 6 s."""
PROCESSES = ("all", "derive")
"""The processes of the services, by their names."""
CLOCK = Path(__file__).parent / "clock"
"""What a process whose clock is moved finds first among its modules."""
DISK = 900 << 20
"""Bytes of the disk that can be filled."""
SYNCHRONOUS: LiteralString = "alter system set synchronous_standby_names = '*'"


Standby = tuple[Home, postgres.PostgresInstance]


@dataclass(frozen=True)
class Store:
    """A Postgres, one of its databases, and what belongs to it; `held`: what is to be stopped."""

    home: Home
    server: postgres.PostgresInstance
    database: str = postgres.DATABASE
    disk: Path | None = None
    standby: Standby | None = None
    held: list[postgres.PostgresInstance] = field(default_factory=list)


@dataclass(frozen=True)
class Bus:
    """One NATS behind a proxy, or a cluster of three without; where services find it."""

    url: str
    single: NatsServer | None = None
    proxy: ChaosProxy | None = None
    cluster: Cluster | None = None


@dataclass
class System:
    """What faults can be done to. Behind a proxy each: Postgres, and a NATS unless it is three.

    `clock`: the file that moves the clock of the services, and `disk`: the folder of a small disk
    that holds Postgres' data; None where they could not be had. `embedder`: the endpoint that
    embeds; None where the services embed by themselves.
    """

    up: Up
    gateway: str
    urls: dict[str, str]
    keys: dict[str, str]
    home: Home
    server: postgres.PostgresInstance
    database: str
    to_postgres: ChaosProxy
    bus: Bus
    standby: Standby | None = None
    clock: Path | None = None
    disk: Path | None = None
    embedder: Embeddings | None = None

    @property
    def admin_url(self) -> str:
        """Where all tenants are seen."""
        return self.server.admin_url(self.database)

    def kill(self, service: str) -> None:
        """kill -9 of a service; its supervisor starts it again."""
        self._signal(service, signal.SIGKILL)

    def terminate(self, service: str) -> None:
        """Tell a service to stop in order; its supervisor starts it again."""
        self._signal(service, signal.SIGTERM)

    def freeze(self, service: str, frozen: bool) -> None:
        """Stop a process without ending it, or let it go on."""
        self._signal(service, signal.SIGSTOP if frozen else signal.SIGCONT)

    def kill_postgres(self) -> None:
        """kill -9 of the postmaster."""
        processes.stop(self.server.pid, [(signal.SIGKILL, 5.0)], self.server.child)

    @retry(stop=stop_after_attempt(4), wait=wait_fixed(1.0), reraise=True)
    async def start_postgres(self) -> None:
        """Start it again on the same port and data, unless it runs.

        Right after a kill -9 it may fail once, while the memory of the killed is still held.
        """
        spec = postgres.PostgresSpec(self.home, self.server.port, options=OPTIONS)
        self.server = await asyncio.to_thread(postgres.start, spec)

    def fail_over(self) -> None:
        """The primary goes away for good, and the standby takes its place and its address."""
        assert self.standby is not None
        self.kill_postgres()
        self.home, self.server = self.standby
        self.standby = None
        with psycopg.connect(self.admin_url, autocommit=True) as db:
            db.execute("select pg_promote()")
        self.to_postgres.redirect("127.0.0.1", self.server.port)

    def shift_clock(self, seconds: int) -> None:
        """Sets the clock of the services forward or back by so much; 0: as it is."""
        if self.clock is not None:
            _set_clock(self.clock, seconds)

    def _signal(self, service: str, sent: signal.Signals) -> None:
        with suppress(ProcessLookupError, KeyError):
            os.kill(self.up.pids()[service], sent)


def leader(cluster: Cluster) -> int:
    """The number of the server that leads JetStream."""
    for _, _, monitor in cluster.ports:
        with suppress(OSError, KeyError):
            url = f"http://127.0.0.1:{monitor}/jsz"
            with urllib.request.urlopen(url, timeout=2) as answer:
                return int(json.load(answer)["meta_cluster"]["leader"].removeprefix("nats-"))
    return 0


@asynccontextmanager
async def running_system(
    folder: Path,
    tenants: list[str],
    several: bool = False,
    movable: bool = False,
    endpoint: bool = False,
    shared: TestRun | None = None,
    settings: Sequence[str] = (),
) -> AsyncIterator[System]:
    """Servers, proxies before them, the services, and a key of each tenant.

    `several`: three NATS servers, and a standby that Postgres replicates to synchronously.
    `movable`: the clock of the services can be moved, where libfaketime can be had. `endpoint`:
    they embed by an endpoint of the tests. `shared`: they keep to the server of that run, to which
    nothing is to be done but by the proxy before it. `settings` come beside `SETTINGS`.
    """
    async with AsyncExitStack() as stack:
        if shared:
            store = stack.enter_context(_shared(shared))
        else:
            store = await _start_own_postgres(stack, folder, several)
        bus = await _bus(stack, folder, several)
        to_postgres = await stack.enter_async_context(ChaosProxy("127.0.0.1", store.server.port))
        clock = folder / "clock"
        env = await asyncio.to_thread(_prepare_clock, clock, folder) if movable else {}
        embedder = await stack.enter_async_context(embeddings()) if endpoint else None
        flags = [*_flags(store, to_postgres.port, bus, embedder), *_set(settings)]
        up = Up(folder / "home", *ANY_PORT, *flags, env=env)
        stack.callback(_stop_system, up)
        addresses = await asyncio.to_thread(up.ready)
        admin_url = store.server.admin_url(store.database)
        keys = {
            tenant: create_key(admin_url, NewApiKey("chaos", KeyRole.ADMIN, tenant=tenant))
            for tenant in tenants
        }
        with psycopg.connect(admin_url, autocommit=True) as db:
            db.execute(DREAM_SOON)
        if embedder:
            await _switch_model(embedder, admin_url)
        moved = clock if env else None
        system = System(
            up,
            addresses["gateway"],
            addresses["services"],
            keys,
            store.home,
            store.server,
            store.database,
            to_postgres,
            bus,
            store.standby,
        )
        system.clock, system.disk, system.embedder = moved, store.disk, embedder
        try:
            yield system
        finally:
            store.held[:1] = [system.server][: len(store.held)]


@contextmanager
def _shared(run: TestRun) -> Iterator[Store]:
    with fresh_database(run) as database:
        yield Store(open_home(run.postgres_home), ensure_postgres(run), database.name)


async def _start_own_postgres(stack: AsyncExitStack, folder: Path, several: bool) -> Store:
    disk = stack.enter_context(_small_disk(folder / "disk"))
    home = open_home(_folder(disk or folder, "postgres"))
    first = await asyncio.to_thread(_prepare_primary, home)
    other = _copy_to_standby(home, _folder(folder, "standby"), first) if several else None
    server = await asyncio.to_thread(_start_postgres, home, first.port)
    held = [server]
    stack.callback(_stop_all, held)
    standby = await asyncio.to_thread(_start_standby, other, server) if other else None
    held += [standby[1]] if standby else []
    return Store(home, server, disk=disk, standby=standby, held=held)


def _stop_system(up: Up) -> None:
    """Ends it and whatever it started, be it that it does not want to."""
    below = up.descendants() if up.process.poll() is None else set()
    try:
        up.clean_up()
    except (subprocess.TimeoutExpired, OSError, ValueError):
        # It does not want to, or is still read from by who waited for its addresses.
        for pid in (up.process.pid, *below):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        up.clean_up()


async def _switch_model(embedder: Embeddings, admin_url: str) -> None:
    """All tenants go by the model of the endpoint from now on."""
    settings = Settings(home=model_home(), **embedder.settings())
    await reembed_tenants(settings, admin_url, list_tenants(admin_url))


def _prepare_primary(home: Home) -> postgres.PostgresInstance:
    """A migrated server, ended again so that its data can be copied."""
    server = _start_postgres(home, 0)
    migrate(server.admin_url())
    postgres.create_service_logins(server)
    postgres.stop(server)
    return server


def _copy_to_standby(home: Home, root: Path, primary: postgres.PostgresInstance) -> Home:
    login = f"user={postgres.ADMIN} password={primary.password} host={primary.host}"
    return copy_as_standby(home, root, f"{login} port={primary.port}")


def _start_standby(home: Home, primary: postgres.PostgresInstance) -> Standby:
    """The standby, for which each commit waits from now on."""
    standby = _start_postgres(home, 0)
    with psycopg.connect(primary.admin_url(), autocommit=True) as db:
        db.execute(SYNCHRONOUS)
        db.execute("select pg_reload_conf()")
    return home, standby


def _start_postgres(home: Home, port: int) -> postgres.PostgresInstance:
    return postgres.start(postgres.PostgresSpec(home, port, options=OPTIONS))


def _stop_all(servers: list[postgres.PostgresInstance]) -> None:
    for server in servers:
        postgres.stop(server)


async def _bus(stack: AsyncExitStack, folder: Path, several: bool) -> Bus:
    if several:
        cluster = stack.enter_context(nats_cluster(_folder(folder, "nats")))
        return Bus(cluster.url, cluster=cluster)
    one = NatsServer(open_home(_folder(folder, "nats")))
    stack.callback(one.kill)
    proxy = await stack.enter_async_context(ChaosProxy("127.0.0.1", port_of(one.url)))
    return Bus(at_port(one.url, proxy.port), one, proxy)


def _prepare_clock(clock: Path, folder: Path) -> dict[str, str]:
    """What makes the services read the time beside that file; nothing where it cannot be had."""
    found = [*Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    if not found and shutil.which("apt-get") and shutil.which("dpkg"):
        for how in (["apt-get", "download", "libfaketime"], ["dpkg", "-x", "PACKAGE", "faketime"]):
            package = next((str(path) for path in folder.glob("*.deb")), "none")
            command = [package if part == "PACKAGE" else part for part in how]
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
        found = [*folder.glob("faketime/usr/lib/*/faketime/libfaketime.so.1")]
    if not found:
        return {}
    _set_clock(clock, 0)
    return {
        "LD_PRELOAD": str(found[0]),
        # Its clock_nanosleep refuses every sleep of Python's.
        "PYTHONPATH": os.pathsep.join([str(CLOCK), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _set_clock(clock: Path, seconds: int) -> None:
    """At once: whoever reads the file finds the one time or the other."""
    other = clock.with_suffix(".next")
    other.write_text(f"{seconds:+d}\n")
    other.replace(clock)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """A disk of its own in memory; None where this user may not mount one."""
    _folder(folder.parent, folder.name)
    how = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0711", "tmpfs", str(folder)]
    if subprocess.run(how, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _folder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(mode=0o711)
    return made


def _flags(store: Store, port: int, bus: Bus, embedder: Embeddings | None) -> list[str]:
    server, database = store.server, store.database
    urls = {
        "database_url": at_port(server.service_url(database), port),
        "database_migration_url": server.admin_url(database),
        "nats_url": bus.url,
        "nats_replicas": 3 if bus.cluster else 1,
        **(embedder.settings() if embedder else {}),
    }
    return _set([*(f"{name}={value}" for name, value in urls.items()), *SETTINGS])


def _set(settings: Sequence[str]) -> list[str]:
    return [flag for setting in settings for flag in ("--set", setting)]

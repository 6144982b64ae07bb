"""Starts, supervises and stops all servers and services: the work of `reverie up`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from reverie.domain.core.errors import Unavailable
from reverie.embedded.home import (
    Home,
    delete_run_file,
    get_or_create_secret,
    open_home,
    write_run_file,
)
from reverie.embedded.lock import hold_home_lock
from reverie.embedded.probe import fetch_health
from reverie.embedded.reporting import GATEWAY, Addresses, ProgressReporter, describe_process
from reverie.embedded.servers.backends import (
    API_KEY_SECRET,
    FirstKey,
    NatsBackend,
    PostgresBackend,
    open_backends,
    strip_url_credentials,
)
from reverie.embedded.supervision.hand_over import HandOver
from reverie.embedded.supervision.process_watch import (
    Certificate,
    stop_all,
    supervise,
    watch_stop_signals,
)
from reverie.embedded.supervision.service_layout import (
    GRPC,
    ServerUrls,
    build_environment,
    check_host,
    choose_ports,
    find_moved_ports,
    listener_names,
    process_names,
)
from reverie.embedded.supervision.service_process import (
    ServiceProcess,
    read_log_end,
    stop_leftovers,
)
from reverie.embedded.tls.setup import TlsSetup, prepare_tls
from reverie.embedded.watchdog import wait_or_stop
from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.inference.model_resolver import is_external_model, resolve_model
from reverie.runtime.settings.settings import Settings, base_url

if TYPE_CHECKING:
    from reverie.embedded.servers.supervised_servers import EmbeddedServer

VAULT_KEY_SECRET = "vault_key"  # noqa: S105
READY_SECONDS = 60.0
"""The maximum time until all services together are ready."""

AfterReady = Callable[[Addresses], Awaitable[None]]


@dataclass(frozen=True)
class Successor:
    """The module that goes on once all is ready, and what it is told beside what runs."""

    module: str
    caller: Mapping[str, Any]


class _StopRequested(Exception):
    """The stop signal arrived while parts were still starting."""


@dataclass
class _Stack:
    """The running parts."""

    database: PostgresBackend
    bus: NatsBackend
    services: list[ServiceProcess]
    tls: TlsSetup | None = None

    @property
    def servers(self) -> list[EmbeddedServer[Any]]:
        """The servers that services need, in start order."""
        return [*self.database.processes, *self.bus.processes]

    @property
    def certificate(self) -> Certificate | None:
        """The machine's own certificate."""
        return (self.tls.folder, self.tls.names) if self.tls else None


async def run_supervisor(
    settings: Settings,
    after_ready: AfterReady | None,
    reporter: ProgressReporter,
    successor: Successor | None = None,
) -> None:
    """Runs everything until SIGINT, SIGTERM or SIGHUP; returns when no process is left.

    `after_ready` runs alongside the services once all are ready; if it raises, everything is
    stopped and its error is raised. With a `successor` it does not return once all are ready.
    Raises `Conflict` if another supervisor locks the home folder, and `Misconfigured` or
    `Unavailable` if a part does not start.
    """
    home = open_home(settings.home)
    with hold_home_lock(home) as lock:
        async with watch_stop_signals() as stop:
            stack = _Stack(PostgresBackend(settings, home), NatsBackend(settings, home), [])
            try:
                async with _running(settings, home, stack, stop, reporter) as (addresses, pipe):
                    if successor is not None:
                        handed = _describe(settings, home, stack, successor, (lock, *pipe))
                        await handed.execute(successor.module, stop)
                    await _supervise(stack, addresses, stop, after_ready, reporter)
            except _StopRequested:
                pass
            finally:
                reporter.stopping()
                await stop_all(stack.servers, stack.services, home)


def _describe(
    settings: Settings,
    home: Home,
    stack: _Stack,
    successor: Successor,
    descriptors: tuple[int, int, int],
) -> HandOver:
    binaries = {"postgres": settings.postgres_bin, "nats": settings.nats_bin}
    return HandOver(
        str(home.root),
        *descriptors,
        environments={service.name: service.environment for service in stack.services},
        servers={
            server.name: (server.port, str(binaries[server.name] or "") or None)
            for server in stack.servers
        },
        certificate=(str(stack.tls.folder), stack.tls.names) if stack.tls else None,
        caller=successor.caller,
    )


@asynccontextmanager
async def _running(
    settings: Settings, home: Home, stack: _Stack, stop: asyncio.Event, reporter: ProgressReporter
) -> AsyncIterator[tuple[Addresses, tuple[int, int]]]:
    """The addresses once all is ready, and both ends of the pipe that services live by."""
    check_host(settings)
    write_run_file(home, "up", {"pid": os.getpid()})
    key = await _prepare(settings, home, stack, reporter)
    _raise_if_stopped(stop)
    read_end, lifeline = os.pipe()
    try:
        reporter.step("the services")
        ports = _build_services(settings, home, stack, read_end, reporter)
        for service in stack.services:
            await asyncio.to_thread(service.start)
        addresses = _collect_addresses(settings, home, stack, key, ports)
        await _wait_until_ready(settings, addresses, stack.services, stop, home, reporter)
        write_run_file(home, "up", {"pid": os.getpid(), **addresses.to_dict()})
        reporter.up(addresses)
        yield addresses, (lifeline, read_end)
    finally:
        # The services end orderly here too: a cut lifeline means the same as SIGTERM.
        os.close(lifeline)
        os.close(read_end)


async def _prepare(
    settings: Settings, home: Home, stack: _Stack, reporter: ProgressReporter
) -> FirstKey:
    reporter.step("Postgres, NATS and the embedding model")
    model = asyncio.create_task(asyncio.to_thread(_fetch_model, settings, home, reporter))
    try:
        await asyncio.to_thread(stop_leftovers, home)
        await open_backends(stack.database, stack.bus, reporter.migrating)
        for server in stack.servers:
            if server.moved_port:
                reporter.note(
                    f"the port of {server.name} is taken; it listens on {server.moved_port}"
                )
        key = await asyncio.to_thread(stack.database.ensure_key)
        if key.warning:
            reporter.note(key.warning)
        return key
    finally:
        await model


def _fetch_model(settings: Settings, home: Home, reporter: ProgressReporter) -> None:
    """Downloads the configured model; for one of another kind, also the model that it replaces.

    Tenants use the replaced model until they are migrated.
    """
    if not settings.embeddings_enabled:
        return
    is_external = settings.embedding_model in settings.embedding_profiles or is_external_model(
        settings.embedding_model, home.root, settings.embedding_model_dir, settings.embedding_url
    )
    try:
        resolve_model(
            DEFAULT_MODEL if is_external else settings.embedding_model,
            home.root,
            settings.embedding_model_dir,
            reporter.progress,
            download=settings.model_download,
        )
    except Unavailable as error:
        reporter.note(f"{error}. Memories are found by their words until it is there")


def _build_services(
    settings: Settings, home: Home, stack: _Stack, read_end: int, reporter: ProgressReporter
) -> dict[str, int]:
    ports, stack.tls = choose_ports(settings), prepare_tls(settings, home)
    for name in find_moved_ports(settings, ports):
        label = "the gateway" if name == GATEWAY else name
        reporter.note(f"the port of {label} is taken; it listens on {ports[name]}")
    settings = _with_vault_key(settings, home)
    # One process runs several services: it logs in to NATS as the one that may do most.
    nats_url = stack.bus.url_for("ingest")
    servers = ServerUrls(stack.database.service_url, stack.database.reader_url, nats_url)
    delete_run_file(home, "services")
    for name in process_names(settings):
        environment = build_environment(name, settings, ports, servers)
        stack.services.append(ServiceProcess(name, home, environment, read_end))
    return ports


def _with_vault_key(settings: Settings, home: Home) -> Settings:
    """The settings with a master key of the vault: the one set, or one kept in the home folder."""
    if settings.vault_key is not None:
        return settings
    key = SecretStr(get_or_create_secret(home, VAULT_KEY_SECRET))
    return settings.model_copy(update={"vault_key": key})


def _collect_addresses(
    settings: Settings, home: Home, stack: _Stack, key: FirstKey, ports: Mapping[str, int]
) -> Addresses:
    key_file = home.secrets / API_KEY_SECRET
    return Addresses(
        home=home.root,
        services={
            name: base_url(settings.host, ports[name], stack.tls is not None)
            for name in listener_names(settings)
        },
        grpc=base_url(settings.host, ports[GRPC]).removeprefix("http://")
        if settings.grpc_enabled
        else None,
        postgres=strip_url_credentials(stack.database.service_url),
        nats=strip_url_credentials(stack.bus.url),
        api_key=key.text,
        key_file=key_file if key_file.exists() and settings.api_key is None else None,
        new_key=key.is_new,
    )


async def _wait_until_ready(
    settings: Settings,
    addresses: Addresses,
    services: Sequence[ServiceProcess],
    stop: asyncio.Event,
    home: Home,
    reporter: ProgressReporter,
) -> None:
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    pending = {
        listener: process
        for process in services
        for listener in listener_names(settings, process.name)
    }
    while pending:
        _raise_if_stopped(stop)
        for name, service in list(pending.items()):
            has_ended = not service.is_running()
            health = await asyncio.to_thread(fetch_health, addresses.services[name], 2.5)
            if health.is_ready and not has_ended:
                del pending[name]
            elif has_ended or asyncio.get_running_loop().time() > deadline:
                problem = "it ended" if has_ended else health.problem
                raise _not_ready_error(service.name, problem, home, reporter)
        await wait_or_stop(stop, 0.05)


def _not_ready_error(
    name: str, problem: str, home: Home, reporter: ProgressReporter
) -> Unavailable:
    log, lines = read_log_end(home, name)
    process = describe_process(name)
    reporter.failed(process, log, lines)
    return Unavailable(process, f"{problem}; its log is {log}")


async def _supervise(
    stack: _Stack,
    addresses: Addresses,
    stop: asyncio.Event,
    after_ready: AfterReady | None,
    reporter: ProgressReporter,
) -> None:
    watching = asyncio.ensure_future(
        supervise(stack.servers, stack.services, stack.certificate, stop, reporter)
    )
    try:
        if after_ready is not None:
            await _run_until_stopped(stop, after_ready(addresses))
        await watching
    finally:
        stop.set()
        await watching


async def _run_until_stopped(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Do the work, but break it off at `stop`."""
    task = asyncio.ensure_future(work)
    stop_task = asyncio.ensure_future(stop.wait())
    await asyncio.wait({task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
    stop_task.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def _raise_if_stopped(stop: asyncio.Event) -> None:
    if stop.is_set():
        raise _StopRequested

"""Bring everything up, keep it up, take it down: what `reverie up` does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from reverie.domain.errors import Unavailable
from reverie.embedded.addresses import Addresses
from reverie.embedded.backing import API_KEY, Bus, Database, Key, open_both, without_password
from reverie.embedded.forker import Forker
from reverie.embedded.home import Home, drop_note, open_home, secret, write_note
from reverie.embedded.lock import only_one
from reverie.embedded.probe import ask_ready
from reverie.embedded.report import Report
from reverie.embedded.services import (
    GRPC,
    Servers,
    ServiceProcess,
    check_host,
    choose_ports,
    end_leftovers,
    environment,
    last_words,
    moved,
    own_environment,
    process_names,
    started_forker,
)
from reverie.embedded.tls import Tls, tls_of
from reverie.embedded.watch import Part, pause, watch
from reverie.inference.catalogue import DEFAULT_MODEL
from reverie.inference.resolver import is_elsewhere, resolve
from reverie.runtime.settings import Settings, base_url

VAULT_KEY = "vault_key"
READY_SECONDS = 60.0
"""How long all services together may take until they are ready."""

AfterReady = Callable[[Addresses], Awaitable[None]]


class _Stopped(Exception):
    """The order to stop came while things were still starting."""


@dataclass
class _Stack:
    """What runs now."""

    database: Database
    bus: Bus
    services: list[ServiceProcess]
    forker: Forker | None = None
    tls: Tls | None = None

    @property
    def parts(self) -> list[Part]:
        return [*self.servers, *self.services]

    @property
    def servers(self) -> list[Part]:
        """What services need, in the order of starting."""
        return [*self.database.parts, *self.bus.parts, *([self.forker] if self.forker else [])]


async def run_up(settings: Settings, after_ready: AfterReady | None, report: Report) -> None:
    """Run everything until SIGINT, SIGTERM or SIGHUP; answers when no process is left.

    `after_ready` runs beside the services once all are ready; when it raises, all is taken
    down and its error is raised. Raises `Conflict` where another supervisor holds the home
    folder, and `Misconfigured` or `Unavailable` where a part does not come up.
    """
    home = open_home(settings.home)
    with only_one(home):
        async with _stop_signals() as stop:
            stack = _Stack(Database(settings, home), Bus(settings, home), [])
            try:
                await _live(settings, home, stack, stop, after_ready, report)
            except _Stopped:
                pass
            finally:
                report.stopping()
                await _take_down(stack, home)


@asynccontextmanager
async def _stop_signals() -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _live(
    settings: Settings,
    home: Home,
    stack: _Stack,
    stop: asyncio.Event,
    after_ready: AfterReady | None,
    report: Report,
) -> None:
    check_host(settings)
    write_note(home, "up", {"pid": os.getpid()})
    # Before the servers: it imports while they start.
    stack.forker = started_forker(settings, home)
    key = await _prepare(settings, home, stack, report)
    _check(stop)
    read_end, lifeline = os.pipe()
    try:
        report.step("the four services")
        chosen = _plan_services(settings, home, stack, read_end, report)
        await asyncio.to_thread(_start_services, stack.services)
        addresses = _addresses(settings, home, stack, key, chosen)
        await _await_ready(addresses.services, stack.services, stop, home, report)
        write_note(home, "up", {"pid": os.getpid(), **addresses.note()})
        report.up(addresses)
        await _stay(stack, addresses, stop, after_ready, report)
    finally:
        # The services end orderly here too: a cut lifeline means the same as SIGTERM.
        os.close(lifeline)
        os.close(read_end)


async def _prepare(settings: Settings, home: Home, stack: _Stack, report: Report) -> Key:
    report.step("Postgres, NATS and the embedding model")
    model = asyncio.create_task(asyncio.to_thread(_fetch_model, settings, home, report))
    try:
        await asyncio.to_thread(end_leftovers, home)
        await open_both(stack.database, stack.bus, report.migrating)
        return await asyncio.to_thread(stack.database.ensure_key)
    finally:
        await model


def _fetch_model(settings: Settings, home: Home, report: Report) -> None:
    """Fetches the model that is set; where that is one of another kind, the one it takes over from.

    Tenants are on that until they are moved.
    """
    elsewhere = is_elsewhere(settings.model, home.root, settings.model_dir, settings.model_url)
    try:
        resolve(
            DEFAULT_MODEL if elsewhere else settings.model,
            home.root,
            settings.model_dir,
            report.progress,
            download=settings.model_pull,
        )
    except Unavailable as error:
        report.note(f"{error}. Memories are found by their words until it is there")


def _plan_services(
    settings: Settings, home: Home, stack: _Stack, read_end: int, report: Report
) -> dict[str, int]:
    chosen, stack.tls = choose_ports(settings), tls_of(settings, home)
    for name in moved(settings, chosen):
        report.note(f"the port set for {name} is taken; it listens on {chosen[name]}")
    settings = _with_vault_key(settings, home)
    urls = stack.database.service_url, stack.database.reader_url
    files = {"NATS_CREDS": settings.nats_creds, "NATS_NKEY": settings.nats_nkey}
    servers = Servers(*urls, stack.bus.url_of, stack.tls, files)
    env = environment(settings, chosen)
    drop_note(home, "services")
    for name in process_names(settings):
        own = own_environment(name, env, chosen, servers)
        stack.services.append(ServiceProcess(name, home, own, read_end, stack.forker))
    return chosen


def _start_services(services: Sequence[ServiceProcess]) -> None:
    for service in services:
        service.start()


def _with_vault_key(settings: Settings, home: Home) -> Settings:
    """The settings with a master key of the vault: the one set, or one kept in the home folder."""
    if settings.vault_key is not None:
        return settings
    return settings.model_copy(update={"vault_key": SecretStr(secret(home, VAULT_KEY))})


def _addresses(
    settings: Settings, home: Home, stack: _Stack, key: Key, chosen: Mapping[str, int]
) -> Addresses:
    key_file = home.secrets / API_KEY
    return Addresses(
        home=home.root,
        services={
            name: base_url(settings.host, chosen[name], stack.tls is not None)
            for name in process_names(settings)
        },
        grpc=base_url(settings.host, chosen[GRPC]).removeprefix("http://")
        if settings.grpc
        else None,
        postgres=without_password(stack.database.service_url),
        nats=without_password(stack.bus.url),
        api_key=key.text,
        key_file=key_file if key_file.exists() and settings.api_key is None else None,
        new_key=key.new,
    )


async def _await_ready(
    urls: Mapping[str, str],
    services: Sequence[ServiceProcess],
    stop: asyncio.Event,
    home: Home,
    report: Report,
) -> None:
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    waiting = {service.name: service for service in services}
    problem = ""
    while waiting:
        _check(stop)
        for name, service in list(waiting.items()):
            ended = not service.running()
            health = await asyncio.to_thread(ask_ready, urls[name], 2.5)
            if health.ready and not ended:
                del waiting[name]
            elif ended or asyncio.get_running_loop().time() > deadline:
                problem = "it ended" if ended else health.problem
                raise _not_ready(name, problem, home, report)
        await pause(stop, 0.05)


def _not_ready(name: str, problem: str, home: Home, report: Report) -> Unavailable:
    log, lines = last_words(home, name)
    report.failed(name, log, lines)
    return Unavailable(f"the service {name}", f"{problem}; its log is {log}")


async def _stay(
    stack: _Stack,
    addresses: Addresses,
    stop: asyncio.Event,
    after_ready: AfterReady | None,
    report: Report,
) -> None:
    works = [watch(stack.parts, stop, report)]
    works += [stack.tls.keep_fresh(stop, report)] if stack.tls else []
    watching = asyncio.gather(*works)
    try:
        if after_ready is not None:
            await _unless(stop, after_ready(addresses))
        await watching
    finally:
        stop.set()
        await watching


async def _unless(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Do the work, but break it off at `stop`."""
    working = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not working.done():
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        working.result()


def _check(stop: asyncio.Event) -> None:
    if stop.is_set():
        raise _Stopped


async def _take_down(stack: _Stack, home: Home) -> None:
    """Services, their forker, NATS, then Postgres; one that will not end holds up no other."""
    stops = [asyncio.to_thread(service.stop) for service in stack.services]
    ended = await asyncio.gather(*stops, return_exceptions=True)
    for part in reversed(stack.servers):
        ended += await asyncio.gather(asyncio.to_thread(part.stop), return_exceptions=True)
    for name in ("services", "up"):
        drop_note(home, name)
    for failure in ended:
        if isinstance(failure, BaseException):
            raise failure

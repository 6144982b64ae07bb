"""A service: what it offers and needs, as one value, and the process that runs it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from reverie.domain.errors import Misconfigured, ReverieError, Unavailable
from reverie.domain.limits import Limits
from reverie.domain.scopes import parse_pattern
from reverie.runtime import allocator
from reverie.runtime.admission import Admission, AdmissionMeters, Bounds
from reverie.runtime.audit import Auditor
from reverie.runtime.auth import (
    Admit,
    CachedKeys,
    KeyFinder,
    TenantOf,
    TokenReader,
    authenticate,
)
from reverie.runtime.client_meters import ClientMeters
from reverie.runtime.endless import prepare_to_stop
from reverie.runtime.forward import Forward, Passing, add_forwards
from reverie.runtime.glance import Turnstile
from reverie.runtime.health import Check, health_routes
from reverie.runtime.idempotency import IdempotencyStore
from reverie.runtime.lifecycle import Background, in_background, stop_signal
from reverie.runtime.logs import Redact, configure_logs
from reverie.runtime.malformed import TURNSTILE, Runner
from reverie.runtime.metrics import Reading, Readings, new_registry
from reverie.runtime.observe import AfterWork, Observer, sign_response
from reverie.runtime.positions import Positions
from reverie.runtime.problems import problems
from reverie.runtime.rates import Rates, SharedCounts
from reverie.runtime.routes import OWN_URL, Door, KnownOf, Route, add_routes
from reverie.runtime.settings import Settings, base_url
from reverie.runtime.strangers import GuardedSite, own_pages_only, spoken
from reverie.runtime.telemetry import install_provider, telemetry
from reverie.runtime.tls import certificate_of

log = structlog.get_logger()

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_UNAVAILABLE = 69
EXIT_CONFIG = 78
_AFTER_SECONDS = 2.0
LOOPBACK = "127.0.0.1"
_IDLE_SECONDS = 75.0
"""Seconds that a connection is kept open between two requests."""


OpenDoor = Callable[[str, Admit], AbstractAsyncContextManager[None]]
"""Opens another way in, given the URL at which the service itself is reached, and what tells who
holds a key."""

ADMIT: web.AppKey[Admit] = web.AppKey("ADMIT", Callable)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Service:
    """Everything that the runtime must know of a service.

    `background` tasks run from start to shutdown and are started anew after a crash.
    `doors` are open while the service listens.
    `registry` takes the service's own metrics beside those of the requests. `counts`: what keys
    and tenants use of their limits; without them nothing is limited. `tenant_of`: tenants by their
    names, for tokens that name one.
    """

    name: str
    port: int
    keys: KeyFinder
    routes: Sequence[Route] = ()
    forwards: Sequence[Forward] = ()
    idempotency: IdempotencyStore | None = None
    checks: Mapping[str, Check] = field(default_factory=dict)
    background: Sequence[Background] = ()
    doors: Sequence[OpenDoor] = ()
    readings: Sequence[Reading] = ()
    registry: CollectorRegistry = field(default_factory=new_registry)
    client_meters: ClientMeters | None = None
    auditor: Auditor | None = None
    known_of: KnownOf | None = None
    known_lately: KnownOf | None = None
    counts: SharedCounts | None = None
    tenant_of: TenantOf | None = None
    positions: Positions = field(default_factory=Positions)


OpenService = Callable[[Settings], AbstractAsyncContextManager[Service]]


def create_app(service: Service, settings: Settings) -> web.Application:
    """The service as an aiohttp application, its background tasks included."""
    install_provider(service.name)
    after = AfterWork()
    observer = Observer(service.registry, after)
    doors: dict[object, Admission] = {}
    turnstile = Turnstile(settings.body_limit)
    seen = [observer.middleware()] + ([service.auditor.middleware()] if service.auditor else [])
    app = web.Application(
        middlewares=[
            spoken,
            observer.shedding(doors, turnstile),
            *seen,
            problems,
            own_pages_only(settings.host, settings.allowed_hosts),
        ],
        client_max_size=settings.body_limit,
    )
    app[TURNSTILE] = turnstile
    app.on_response_prepare.append(sign_response)
    prepare_to_stop(app)
    admit = partial(Admission, _bounds(settings), AdmissionMeters(service.registry))
    door = Door(
        CachedKeys(service.keys, settings.key_cache_seconds),
        service.idempotency,
        settings.body_limit,
        settings.request_timeout,
        service.known_of,
        service.known_lately,
        _rates(service.counts, settings),
        service.positions,
        admit("self"),
        _tokens(service.tenant_of, settings),
    )
    known: Admit = partial(authenticate, keys=door.keys, tokens=door.tokens)
    app[ADMIT] = known
    readings = Readings(service.registry, service.readings)
    own = health_routes(service.name, service.checks, service.registry, readings)
    add_routes(app, [*own, *service.routes], door, doors)
    background = [*service.background, *([service.auditor.keep_writing] if service.auditor else [])]
    app.cleanup_ctx.append(partial(_background, background))
    if service.forwards:
        meters = service.client_meters or ClientMeters(service.registry)
        limits = settings.body_limit, settings.request_timeout
        told = service.positions.passed_on
        passing = Passing(*limits, meters, admit, doors, told, settings.authority)
        add_forwards(app, service.forwards, passing)
    app.cleanup_ctx.append(partial(_after_work, after))
    return app


def _rates(counts: SharedCounts | None, settings: Settings) -> Rates | None:
    if counts is None:
        return None
    of_key = Limits(requests_a_minute=settings.rate_limit or None)
    of_tenant = Limits(
        requests_a_minute=settings.tenant_rate_limit or None,
        requests_a_day=settings.tenant_requests_a_day or None,
        memories_a_day=settings.tenant_memories_a_day or None,
        bytes_a_day=settings.tenant_bytes_a_day or None,
    )
    return Rates(counts, of_key, of_tenant)


def _tokens(tenant_of: TenantOf | None, settings: Settings) -> TokenReader | None:
    """Reads tokens where the settings name whose. Raises `Misconfigured`."""
    if settings.oidc_issuer is None or tenant_of is None:
        return None
    if not settings.oidc_audience or settings.oidc_jwks_url is None:
        raise Misconfigured("oidc_issuer", "needs oidc_audience and oidc_jwks_url beside it")
    # Here and not above: who takes no tokens need not load what reads them.
    from reverie.runtime.tokens import Provider, Tokens

    scopes = tuple(parse_pattern(one) for one in settings.oidc_scopes.split(",") if one.strip())
    named = settings.oidc_issuer, settings.oidc_audience, settings.oidc_jwks_url
    claims = settings.oidc_tenant_claim, settings.oidc_role_claim
    return Tokens(
        Provider(*named, *claims, settings.oidc_reads_claim, settings.oidc_writes_claim, scopes),
        tenant_of,
    )


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        settings.work_parallel,
        settings.work_queue,
        settings.work_room,
        settings.work_queue_seconds,
        settings.work_clears_seconds,
    )


async def _background(works: Sequence[Background], _: web.Application) -> AsyncIterator[None]:
    async with in_background(works):
        yield


async def _after_work(after: AfterWork, _: web.Application) -> AsyncIterator[None]:
    """Torn down first: nothing it may use is gone yet."""
    yield
    await after.drain(_AFTER_SECONDS)


@asynccontextmanager
async def running(
    service: Service, settings: Settings, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serves while it is open; yields the base URL. Port 0 takes a free one.

    Leaving it stops accepting, lets requests in flight finish within `shutdown_seconds`,
    waits for work after replies, and stops the background tasks.
    """
    certificate = certificate_of(settings.tls_cert, settings.tls_key, settings.tls)
    fresh = [certificate.keep_fresh] if certificate else []
    app = create_app(service, settings)
    own = app[OWN_URL] = []
    runner = Runner(
        app,
        access_log=None,
        shutdown_timeout=settings.shutdown_seconds,
        keepalive_timeout=_IDLE_SECONDS,
    )
    await runner.setup()
    try:
        bounds = settings.head_seconds, settings.connection_limit
        context = certificate.context if certificate else None
        await _listen(GuardedSite(runner, host, port, bounds, context), service, host, port)
        url = inside = base_url(host, runner.addresses[0][1])
        if certificate:
            # Doors of this process that make calls of it do so without leaving the machine.
            await GuardedSite(runner, LOOPBACK, 0, bounds).start()
            url, inside = f"https{url[4:]}", base_url(LOOPBACK, runner.addresses[1][1])
            own.append(inside)
        async with AsyncExitStack() as doors, in_background(fresh):
            for door in service.doors:
                await doors.enter_async_context(door(inside, app[ADMIT]))
            yield url
    finally:
        await runner.cleanup()


async def _listen(site: GuardedSite, service: Service, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        raise _not_listening(error, service, host, port) from None


def _not_listening(error: OSError, service: Service, host: str, port: int) -> Misconfigured:
    setting = f"{service.name}_port"
    if error.errno == errno.EADDRINUSE:
        variable = f"REVERIE_{setting.upper()}"
        return Misconfigured(
            setting, f"port {port} on {host} is taken: stop who uses it or set {variable}"
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return Misconfigured(setting, f"port {port} needs rights: choose one above 1023")
    return Misconfigured("host", f"cannot listen on {host}: {error.strerror}")


def serve(
    open_service: OpenService,
    settings: Settings,
    name: str = "reverie",
    redact: Redact | None = None,
) -> int:
    """Runs a service until it is told to stop; the exit code of the process.

    0 after a stop, 78 where a setting is wrong, 69 where something it needs does not answer,
    1 where something broke. What went wrong is one log line; never a bare stack trace.
    """
    allocator.keep_little()
    configure_logs(settings, name, redact)
    with telemetry(settings, name, redact):
        try:
            asyncio.run(_serve(open_service, settings))
        except ReverieError as error:
            log.error("start_failed", problem=error.code, reason=str(error))
            return _exit_code(error)
        except Exception:
            log.exception("service_failed")
            return EXIT_FAILED
    return EXIT_OK


def _exit_code(error: ReverieError) -> int:
    if isinstance(error, Misconfigured):
        return EXIT_CONFIG
    return EXIT_UNAVAILABLE if isinstance(error, Unavailable) else EXIT_FAILED


async def _serve(open_service: OpenService, settings: Settings) -> None:
    """A stop before the service is open breaks the opening off; later it ends the serving."""
    opened = asyncio.Event()
    async with stop_signal() as stop:
        life = asyncio.create_task(_life(open_service, settings, opened, stop))
        told = asyncio.create_task(stop.wait())
        await asyncio.wait({life, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not opened.is_set():
            life.cancel()
        await asyncio.wait({life})
    if not life.cancelled():
        life.result()


async def _life(
    open_service: OpenService, settings: Settings, opened: asyncio.Event, stop: asyncio.Event
) -> None:
    async with (
        open_service(settings) as service,
        running(service, settings, settings.host, service.port) as url,
        in_background([allocator.give_back_now_and_then]),
    ):
        opened.set()
        allocator.leave_what_stays()
        log.info("listening", url=url)
        await stop.wait()
    log.info("stopped")

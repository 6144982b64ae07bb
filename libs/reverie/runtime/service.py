"""The service definition, its aiohttp application, and the process that runs it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from reverie.domain.access.principals import UsageLimits
from reverie.domain.access.scopes import parse_pattern
from reverie.domain.core.errors import Misconfigured, ReverieError, Unavailable
from reverie.domain.redaction.redactor import RedactorLoader
from reverie.runtime.auth.authentication import (
    Authenticator,
    CachedKeyFinder,
    KeyFinder,
    TenantLookup,
    authenticate,
)
from reverie.runtime.http.audit import Auditor
from reverie.runtime.http.connections import defer_continue, serve_connections, unrouted
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.exchange import RequestHandler
from reverie.runtime.http.health import HealthCheck, health_routes
from reverie.runtime.http.host_guard import create_host_guard
from reverie.runtime.http.idempotency import IdempotencyStore
from reverie.runtime.http.instrumentation import (
    AfterReplyRunner,
    RequestInstrumentation,
)
from reverie.runtime.http.read_your_writes import PositionHooks
from reverie.runtime.http.request_handling import RouteDependencies, add_routes
from reverie.runtime.http.reverse_proxy import ProxyOptions, ProxyRoute, ReverseProxy
from reverie.runtime.http.routes import Route
from reverie.runtime.http.streaming import register_shutdown_signal
from reverie.runtime.http.tls import load_certificate
from reverie.runtime.limits.concurrency import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    ConcurrencyMetrics,
)
from reverie.runtime.limits.rate_limiter import RateLimiter, SharedQuotas
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie.runtime.observability.logs import Redact, configure_logs, current_service
from reverie.runtime.observability.metrics import PolledGauge, PolledGauges, create_registry
from reverie.runtime.observability.tracing import export_spans, install_provider
from reverie.runtime.process import system_resources
from reverie.runtime.process.lifecycle import BackgroundJob, run_in_background, stop_signal
from reverie.runtime.settings.settings import Settings, base_url, instance_id

if TYPE_CHECKING:
    from reverie.runtime.auth.oidc import OidcTokenVerifier

log = structlog.get_logger()

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_UNAVAILABLE = 69
EXIT_CONFIG = 78
_AFTER_REPLY_TIMEOUT = 2.0
_KEEPALIVE_SECONDS = 75.0
"""Seconds that a connection is kept open between two requests."""
_READ_BUFFER_BYTES = 64 * 1024
"""What a connection holds of a body that nobody reads yet; twice as much at most."""


ServerFactory = Callable[[Dispatcher, Authenticator], AbstractAsyncContextManager[None]]
"""Opens another server whose calls go through the dispatcher, too."""

MountFactory = Callable[[Dispatcher, Authenticator], RequestHandler]
"""Makes what answers all requests below a path; it calls other routes through the dispatcher."""

AUTHENTICATOR: web.AppKey[Authenticator] = web.AppKey("AUTHENTICATOR", Callable)  # type: ignore[arg-type]
DISPATCHER = web.AppKey("DISPATCHER", Dispatcher)


@dataclass(frozen=True)
class Service:
    """The parts of a service that the runtime needs.

    `background` tasks run from start to shutdown and are restarted after a crash. `extra_servers`
    are open while the service listens. `registry` contains the service's own metrics and those of
    the requests. `quotas`: the usage of limits by keys and tenants; without it nothing is limited.
    `find_tenant`: finds tenants by name, for tokens that name one. `mounts`: what answers all
    requests at and below a path, in place of routes.
    """

    name: str
    port: int
    keys: KeyFinder
    routes: Sequence[Route] = ()
    proxy_routes: Sequence[ProxyRoute] = ()
    idempotency: IdempotencyStore | None = None
    checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    background: Sequence[BackgroundJob] = ()
    extra_servers: Sequence[ServerFactory] = ()
    polled_gauges: Sequence[PolledGauge] = ()
    registry: CollectorRegistry = field(default_factory=create_registry)
    auditor: Auditor | None = None
    load_redactor: RedactorLoader | None = None
    load_cached_redactor: RedactorLoader | None = None
    quotas: SharedQuotas | None = None
    find_tenant: TenantLookup | None = None
    positions: PositionHooks = field(default_factory=PositionHooks)
    mounts: Mapping[str, MountFactory] = field(default_factory=dict)


ServiceFactory = Callable[[Settings], AbstractAsyncContextManager[Service]]


def create_app(service: Service, settings: Settings) -> web.Application:
    """The service as an aiohttp application, its background tasks included."""
    install_provider(service.name)
    after_reply = AfterReplyRunner()
    instrumentation = RequestInstrumentation(service.registry, after_reply)
    dispatcher = Dispatcher(instrumentation, service.auditor)
    check_headers = create_host_guard(settings.host, settings.allowed_hosts)
    app = web.Application(
        middlewares=[serve_connections(dispatcher, check_headers, settings.request_timeout)]
    )
    app.router.add_route("*", "/{path:.*}", unrouted, expect_handler=defer_continue)
    app[DISPATCHER] = dispatcher
    authenticator: Authenticator = partial(
        authenticate,
        keys=CachedKeyFinder(service.keys, settings.key_cache_ttl),
        tokens=create_token_verifier(service.find_tenant, settings),
    )
    app[AUTHENTICATOR] = authenticator
    register_shutdown_signal(app)
    create_limiter = partial(
        ConcurrencyLimiter,
        ConcurrencyLimits(
            settings.max_concurrent_requests, settings.request_queue, settings.request_queue_timeout
        ),
        ConcurrencyMetrics(service.registry),
    )
    deps = RouteDependencies(
        authenticate=authenticator,
        idempotency=service.idempotency,
        body_limit=settings.body_limit,
        request_timeout=settings.request_timeout,
        load_redactor=service.load_redactor,
        load_cached_redactor=service.load_cached_redactor,
        rates=_create_rate_limiter(service.quotas, settings),
        positions=service.positions,
        concurrency=create_limiter("self"),
        dispatcher=dispatcher,
        span_content=settings.span_content,
    )
    gauges = PolledGauges(service.registry, service.polled_gauges)
    builtin_routes = health_routes(
        service.name, service.checks, service.registry, gauges, instance_id(settings.home)
    )
    add_routes([*builtin_routes, *service.routes], deps)
    for prefix, create_handler in service.mounts.items():
        dispatcher.add_prefix(prefix, create_handler(dispatcher, authenticator))
    reverse_proxy = (
        ReverseProxy(
            ProxyOptions(
                settings.body_limit,
                settings.request_timeout,
                HttpClientMetrics(service.registry),
                create_limiter,
                authenticator,
                service.positions.record_proxied,
                settings.trusted_ca_file,
            )
        )
        if service.proxy_routes
        else None
    )
    if reverse_proxy is not None:
        reverse_proxy.add_routes(dispatcher, service.proxy_routes)

    async def run_background(_: web.Application) -> AsyncIterator[None]:
        jobs = [*service.background, *([service.auditor.run_writer] if service.auditor else [])]
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(run_in_background(jobs))
            if reverse_proxy is not None:
                await stack.enter_async_context(reverse_proxy.run())
            yield
            # This work ends first, while everything that it uses still exists.
            await after_reply.drain(_AFTER_REPLY_TIMEOUT)

    app.cleanup_ctx.append(run_background)
    return app


def _create_rate_limiter(quotas: SharedQuotas | None, settings: Settings) -> RateLimiter | None:
    if quotas is None:
        return None
    key_limits = UsageLimits(requests_per_minute=settings.rate_limit or None)
    tenant_limits = UsageLimits(
        requests_per_minute=settings.tenant_rate_limit or None,
        requests_per_day=settings.tenant_daily_requests or None,
        memories_per_day=settings.tenant_daily_memories or None,
        bytes_per_day=settings.tenant_daily_bytes or None,
    )
    return RateLimiter(quotas, key_limits, tenant_limits)


def create_token_verifier(
    find_tenant: TenantLookup | None, settings: Settings
) -> OidcTokenVerifier | None:
    """Creates a token verifier if the settings name a provider. Raises `Misconfigured`."""
    if settings.oidc_issuer is None or find_tenant is None:
        return None
    if not settings.oidc_audience or settings.oidc_jwks_url is None:
        raise Misconfigured("oidc_issuer", "needs oidc_audience and oidc_jwks_url beside it")
    # Here and not above: who takes no tokens need not load what reads them.
    from reverie.runtime.auth.oidc import OidcProvider, OidcTokenVerifier

    scopes = tuple(
        parse_pattern(pattern)
        for pattern in settings.oidc_default_scopes.split(",")
        if pattern.strip()
    )
    provider = OidcProvider(
        settings.oidc_issuer,
        settings.oidc_audience,
        settings.oidc_jwks_url,
        scopes,
        **{f"{name}_claim": claim for name, claim in settings.oidc_claims.items()},
    )
    return OidcTokenVerifier(provider, find_tenant)


@asynccontextmanager
async def start_service(
    service: Service, settings: Settings, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serves while it is open; yields the base URL. Port 0 takes a free one.

    Leaving it stops accepting, lets requests in flight finish within `shutdown_timeout`,
    waits for work after replies, and stops the background tasks.
    """
    certificate = load_certificate(settings.tls_cert, settings.tls_key, settings.tls_source)
    certificate_jobs = [certificate.watch_files] if certificate else []
    app = create_app(service, settings)
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=settings.shutdown_timeout,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        read_bufsize=_READ_BUFFER_BYTES,
        auto_decompress=False,
    )
    await runner.setup()
    try:
        context = certificate.context if certificate else None
        try:
            await web.TCPSite(runner, host, port, ssl_context=context).start()
        except OSError as error:
            raise _listen_error(error, service, host, port) from None
        url = base_url(host, runner.addresses[0][1])
        if certificate:
            url = f"https{url[4:]}"
        async with AsyncExitStack() as servers, run_in_background(certificate_jobs):
            for server_factory in service.extra_servers:
                server = server_factory(app[DISPATCHER], app[AUTHENTICATOR])
                await servers.enter_async_context(server)
            yield url
    finally:
        await runner.cleanup()


def _listen_error(error: OSError, service: Service, host: str, port: int) -> Misconfigured:
    setting = f"{service.name}_port"
    if error.errno == errno.EADDRINUSE:
        variable = f"REVERIE_{setting.upper()}"
        return Misconfigured(
            setting, f"port {port} on {host} is taken: stop who uses it or set {variable}"
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return Misconfigured(setting, f"port {port} needs rights: choose one above 1023")
    return Misconfigured("host", f"cannot listen on {host}: {error.strerror}")


@dataclass(frozen=True)
class ServiceLaunch:
    """A service that this process runs: its name, how it is opened, and its settings."""

    name: str
    open_service: ServiceFactory
    settings: Settings


def serve(launches: Sequence[ServiceLaunch], process: str, redact: Redact | None = None) -> int:
    """Runs services on one event loop until the process is stopped; returns the exit code.

    If one of them fails, all of them end. The code is 0 after a stop, 78 if a setting is wrong, 69
    if a dependency does not answer, and 1 after another error. An error is logged as one line,
    never as a bare stack trace.
    """
    system_resources.tune_malloc()
    settings = launches[0].settings
    configure_logs(settings, process, redact)
    with export_spans(settings, process, redact):
        try:
            asyncio.run(_serve(launches))
        except ReverieError as error:
            log.error("start_failed", problem=error.code, reason=str(error))
            if isinstance(error, Misconfigured):
                return EXIT_CONFIG
            return EXIT_UNAVAILABLE if isinstance(error, Unavailable) else EXIT_FAILED
        except Exception:
            log.exception("service_failed")
            return EXIT_FAILED
    return EXIT_OK


async def _serve(launches: Sequence[ServiceLaunch]) -> None:
    """Runs each service in a task of its own until a stop, or until one of them fails.

    What is not open yet is broken off then; what is open shuts down in order.
    """
    opened = [asyncio.Event() for _ in launches]

    async def tune_memory() -> None:
        for event in opened:
            await event.wait()
        system_resources.freeze_gc()
        await system_resources.trim_memory_periodically()

    async with stop_signal() as stop, run_in_background([tune_memory]):
        tasks = [
            asyncio.create_task(_run_until_stopped(launch, event, stop))
            for launch, event in zip(launches, opened, strict=True)
        ]
        stop_task = asyncio.create_task(stop.wait())
        await asyncio.wait({*tasks, stop_task}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        for task, event in zip(tasks, opened, strict=True):
            if not event.is_set():
                task.cancel()
        await asyncio.wait({*tasks, stop_task})
    for task in tasks:
        if not task.cancelled():
            task.result()


async def _run_until_stopped(
    launch: ServiceLaunch, opened: asyncio.Event, stop: asyncio.Event
) -> None:
    # This task has a context of its own, which all that the service starts inherits.
    current_service.set(launch.name)
    settings = launch.settings
    async with (
        launch.open_service(settings) as service,
        start_service(service, settings, settings.host, service.port) as url,
    ):
        opened.set()
        log.info("listening", url=url)
        await stop.wait()
    log.info("stopped")

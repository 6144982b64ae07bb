"""Direct access for operator commands: Postgres, NATS, one tenant's database, master keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from reverie.domain.core.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from reverie.bus.credentials import NatsCredentials
    from reverie.bus.interface import MessageBus
    from reverie.domain.access.principals import Principal
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database

T = TypeVar("T")
CONNECT_TIMEOUT = 5.0


def resolve_database_url(settings: Settings) -> str:
    """The configured operator URL, else that of the embedded Postgres. Raises `Unavailable`."""
    configured = settings.database_migration_url or settings.database_url
    if configured is not None:
        return configured.get_secret_value()
    from reverie.embedded.home import existing_home
    from reverie.embedded.servers import postgres

    home = existing_home(settings.home)
    server = postgres.find(home) if home else None
    if server is None:
        raise Unavailable("Postgres", f"run `reverie up` (nothing runs on {settings.home})")
    return server.admin_url()


def resolve_bus_url(settings: Settings) -> str:
    """The configured URL of NATS, or that of the running embedded one. Raises `Unavailable`."""
    if settings.nats_url is not None:
        return settings.nats_url.get_secret_value()
    from reverie.embedded.home import existing_home
    from reverie.embedded.servers import nats

    home = existing_home(settings.home)
    server = nats.find(home) if home else None
    if server is None:
        raise Unavailable("NATS", f"run `reverie up` (nothing runs on {settings.home})")
    return server.url


def build_bus_credentials(settings: Settings) -> NatsCredentials:
    """Returns the credentials of operator commands on NATS, if its URL contains none."""
    from reverie.bus.credentials import NatsCredentials

    return NatsCredentials(settings.nats_creds, settings.ca_file)


def run_for_tenant(
    settings: Settings, tenant: str, work: Callable[[Database, Principal], Awaitable[T]]
) -> T:
    """Runs `work` on the database as an administrator of one tenant, under row-level security."""
    import asyncio

    from reverie.domain.access.principals import KeyRole, Principal
    from reverie.store.db.database import open_database

    url = resolve_database_url(settings)
    principal = Principal(
        resolve_tenant_id(settings, tenant), tenant, "operator", KeyRole.ADMIN, ("*",), ("*",)
    )

    async def run() -> T:
        async with open_database(url, size=2) as database:
            return await work(database, principal)

    return asyncio.run(run())


def resolve_tenant_id(settings: Settings, tenant: str) -> int:
    """The id of a tenant. Raises `NotFound`."""
    return find_tenants(resolve_database_url(settings), tenant)[0][0]


def find_tenants(url: str, tenant: str | None) -> list[tuple[int, str]]:
    """The ids and names of all tenants, or of the given one. Raises `NotFound`."""
    from reverie.store.platform.api_keys import list_tenants

    tenants = [(id, name) for id, name in list_tenants(url) if tenant in (None, name)]
    if tenant is not None and not tenants:
        raise NotFound("tenant", tenant)
    return tenants


def run_on_bus(settings: Settings, work: Callable[[MessageBus], Awaitable[T]]) -> T:
    """Runs `work` on a connected bus. Raises `Unavailable` if NATS does not answer."""
    import asyncio

    return asyncio.run(run_on_bus_async(settings, work))


async def run_on_bus_async(settings: Settings, work: Callable[[MessageBus], Awaitable[T]]) -> T:
    """`run_on_bus` within a running loop."""
    import sys

    from reverie.bus.nats_bus import connect
    from reverie.runtime.observability.logs import configure_logs

    # Standard output is for the result; only errors of the connection are logged.
    configure_logs(settings.model_copy(update={"log_level": "error"}), "cli", stream=sys.stderr)
    async with connect(
        resolve_bus_url(settings), "reverie-cli", credentials=build_bus_credentials(settings)
    ) as bus:
        if not await bus.wait_connected(CONNECT_TIMEOUT):
            raise Unavailable("NATS", "check that it runs and that nats_url is right")
        return await work(bus)


def load_master_keys(settings: Settings) -> str | None:
    """Returns the configured master keys, else those of the home folder; None if there are none."""
    if settings.vault_key is not None:
        return settings.vault_key.get_secret_value()
    from reverie.embedded.home import existing_home, read_secret

    home = existing_home(settings.home)
    return read_secret(home, "vault_key") if home else None

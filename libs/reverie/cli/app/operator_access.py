"""Database and NATS addresses for operator commands, and work on one tenant's database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from reverie.domain.access.principals import KeyRole, Principal
from reverie.domain.core.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from reverie.bus.credentials import NatsCredentials
    from reverie.runtime.settings.settings import Settings


def resolve_database_url(settings: Settings) -> str:
    """The address for operators: the one that is set, or that of the running embedded Postgres.

    Raises `Unavailable` where neither is there.
    """
    configured = settings.database_migration_url or settings.database_url
    if configured is not None:
        return configured.get_secret_value()
    from reverie.embedded import postgres
    from reverie.embedded.home import existing_home

    home = existing_home(settings.home)
    server = postgres.find(home) if home else None
    if server is None:
        raise Unavailable("Postgres", f"run `reverie up` (nothing runs on {settings.home})")
    return server.admin_url()


def resolve_bus_url(settings: Settings) -> str:
    """The address of NATS: the one that is set, or that of the running embedded one.

    Raises `Unavailable` where neither is there.
    """
    if settings.nats_url is not None:
        return settings.nats_url.get_secret_value()
    from reverie.embedded import nats
    from reverie.embedded.home import existing_home

    home = existing_home(settings.home)
    server = nats.find(home) if home else None
    if server is None:
        raise Unavailable("NATS", f"run `reverie up` (nothing runs on {settings.home})")
    return server.url


def build_bus_credentials(settings: Settings) -> NatsCredentials:
    """Who an operator's command is on that NATS, where its address does not say."""
    from reverie.bus.credentials import NatsCredentials

    return NatsCredentials(settings.nats_creds, settings.nats_nkey, settings.ca_file)


if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings
    from reverie.store.db.database import Database

T = TypeVar("T")


def run_for_tenant(
    settings: Settings, tenant: str, work: Callable[[Database, Principal], Awaitable[T]]
) -> T:
    """Work on one tenant, under the role that row-level security holds."""
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
    """The number of a tenant. Raises `NotFound`."""
    from reverie.store.platform.api_keys import list_tenants

    for tenant_id, name in list_tenants(resolve_database_url(settings)):
        if name == tenant:
            return tenant_id
    raise NotFound("tenant", tenant)

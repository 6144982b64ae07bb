"""Work on one tenant straight on the database, as an operator does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from reverie.domain.access import Principal, Role
from reverie.domain.errors import NotFound

if TYPE_CHECKING:
    from reverie.runtime.settings import Settings
    from reverie.store.database import Database

T = TypeVar("T")


def run_on(
    settings: Settings, tenant: str, work: Callable[[Database, Principal], Awaitable[T]]
) -> T:
    """Work on one tenant, under the role that row-level security holds."""
    from reverie.cli.place import admin_url
    from reverie.store.database import open_database

    url = admin_url(settings)
    who = Principal(tenant_number(settings, tenant), tenant, "operator", Role.ADMIN, ("*",), ("*",))

    async def run() -> T:
        async with open_database(url, size=2) as database:
            return await work(database, who)

    return asyncio.run(run())


def tenant_number(settings: Settings, tenant: str) -> int:
    """The number of a tenant. Raises `NotFound`."""
    from reverie.cli.place import admin_url
    from reverie.store.bootstrap import tenant_names

    for number, name in tenant_names(admin_url(settings)):
        if name == tenant:
            return number
    raise NotFound("tenant", tenant)

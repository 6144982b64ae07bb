"""Where the database and the bus are that an operator's command works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.domain.errors import Unavailable

if TYPE_CHECKING:
    from reverie.bus.credentials import Credentials
    from reverie.runtime.settings import Settings


def admin_url(settings: Settings) -> str:
    """The address for operators: the one that is set, or that of the running embedded Postgres.

    Raises `Unavailable` where neither is there.
    """
    given = settings.migrate_database_url or settings.database_url
    if given is not None:
        return given.get_secret_value()
    from reverie.embedded import postgres
    from reverie.embedded.home import existing_home

    home = existing_home(settings.home)
    found = postgres.find(home) if home else None
    if found is None:
        raise Unavailable("Postgres", f"run `reverie up` (nothing runs on {settings.home})")
    return found.admin_url()


def bus_url(settings: Settings) -> str:
    """The address of NATS: the one that is set, or that of the running embedded one.

    Raises `Unavailable` where neither is there.
    """
    if settings.nats_url is not None:
        return settings.nats_url.get_secret_value()
    from reverie.embedded import nats
    from reverie.embedded.home import existing_home

    home = existing_home(settings.home)
    found = nats.find(home) if home else None
    if found is None:
        raise Unavailable("NATS", f"run `reverie up` (nothing runs on {settings.home})")
    return found.url


def bus_credentials(settings: Settings) -> Credentials:
    """Who an operator's command is on that NATS, where its address does not say."""
    from reverie.bus.credentials import Credentials

    return Credentials(settings.nats_creds, settings.nats_nkey, settings.ca)

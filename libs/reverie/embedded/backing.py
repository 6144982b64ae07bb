"""Postgres and NATS for the services: external ones by URL, or embedded ones."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from reverie.bus.credentials import Credentials
from reverie.bus.streams import ensure_streams
from reverie.domain.errors import Misconfigured
from reverie.embedded.home import Home, read_secret, write_secret
from reverie.embedded.watch import Part
from reverie.runtime.settings import Settings
from reverie.store.bootstrap import ensure_key
from reverie.store.migrate import Told, migrate, untold

if TYPE_CHECKING:
    from reverie.embedded.servers import NatsPart

API_KEY = "api_key"


@dataclass(frozen=True)
class Key:
    """The first key as far as this machine knows it; `new` when it was made just now."""

    text: str | None = field(repr=False)
    new: bool


class Database:
    """The Postgres of the settings, or the embedded one."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self.parts: list[Part] = []
        self.admin_url = ""
        self.service_url = ""
        self.reader_url: str | None = None

    def open(self, tell: Told = untold) -> None:
        """Start the embedded server unless one is given; bring the schema up to date."""
        given = self._settings.database_url
        if given is None:
            self._open_embedded(tell)
        else:
            self.service_url = given.get_secret_value()
            self.reader_url = _value(self._settings.reader_database_url)
            self.admin_url = _value(self._settings.migrate_database_url) or self.service_url
            migrate(self.admin_url, tell)

    def _open_embedded(self, tell: Told) -> None:
        # Here and not above: with a URL given, no embedded server is even imported.
        from reverie.embedded import postgres
        from reverie.embedded.servers import PostgresPart

        part = PostgresPart(self._settings, self._home)
        self.parts.append(part)
        part.start()
        self.admin_url = part.server.admin_url()
        self.service_url = part.server.service_url()
        migrate(self.admin_url, tell)
        postgres.allow_services(part.server)
        self.reader_url = part.server.reader_url()

    def ensure_key(self) -> Key:
        """The first key stands; answers its text where this machine may know it."""
        given = _value(self._settings.api_key)
        if given is not None or not self.parts:
            return self._external_key(given)
        # Written down before it is made, so that no crash leaves a key that nobody knows.
        kept = read_secret(self._home, API_KEY)
        if kept is None:
            return self._new_key()
        try:
            ensure_key(self.admin_url, kept)
        except Misconfigured:
            # The kept key was revoked; whoever owns this machine still needs one.
            return self._new_key()
        return Key(kept, new=False)

    def _new_key(self) -> Key:
        text = write_secret(self._home, API_KEY, f"rv_{secrets.token_urlsafe(32)}")
        ensure_key(self.admin_url, text)
        return Key(text, new=True)

    def _external_key(self, given: str | None) -> Key:
        made = ensure_key(self.admin_url, given)
        if given is None and made is not None:
            write_secret(self._home, API_KEY, made)
            return Key(made, new=True)
        return Key(given or read_secret(self._home, API_KEY), new=False)


class Bus:
    """The NATS of the settings, or the embedded one."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self.parts: list[Part] = []
        self.url = ""
        self._part: NatsPart | None = None

    @property
    def credentials(self) -> Credentials:
        """Who operates it, where its address does not say."""
        settings = self._settings
        return Credentials(settings.nats_creds, settings.nats_nkey, settings.ca)

    @property
    def replicas(self) -> int:
        """The copies of each stream; the embedded server is one."""
        return 1 if self.parts else self._settings.nats_replicas

    def open(self) -> None:
        """Start the embedded server unless one is given."""
        given = _value(self._settings.nats_url)
        self.url = given if given is not None else self._open_embedded()

    def url_of(self, service: str) -> str | None:
        """Where a service finds it: the embedded server as a user of its own, if it needs one."""
        return self._part.server.url_of(self._home, service) if self._part else self.url

    def _open_embedded(self) -> str:
        from reverie.embedded.servers import NatsPart

        part = self._part = NatsPart(self._settings, self._home)
        self.parts.append(part)
        part.start()
        return part.server.url


async def open_both(database: Database, bus: Bus, tell: Told = untold) -> None:
    """Both at once; schema, streams and consumers stand afterwards.

    Waits for both even when one fails, so that what was started is known and can be stopped.
    """
    outcomes = await asyncio.gather(
        asyncio.to_thread(database.open, tell), _open_bus(bus), return_exceptions=True
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def _open_bus(bus: Bus) -> None:
    await asyncio.to_thread(bus.open)
    await ensure_streams(bus.url, bus.replicas, credentials=bus.credentials)


def without_password(url: str) -> str:
    """The URL as it may be shown: no user, no password, no options."""
    shown = []
    for one in url.split(","):
        parts = urlsplit(one.strip())
        port = f":{parts.port}" if parts.port else ""
        shown.append(f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}")
    return ",".join(shown)


def _value(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None

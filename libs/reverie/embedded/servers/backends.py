"""Provides Postgres and NATS to the services, by configured URL or as embedded servers."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from reverie.bus.credentials import NatsCredentials
from reverie.domain.core.errors import Misconfigured
from reverie.embedded.home import Home, read_secret, write_secret
from reverie.runtime.settings.settings import Settings
from reverie.store.db.migrate import MigrationProgress, ignore_progress, migrate
from reverie.store.platform.api_keys import RetiredKey, ensure_key

if TYPE_CHECKING:
    from reverie.embedded.servers.nats import NatsInstance
    from reverie.embedded.servers.supervised_servers import EmbeddedServer

API_KEY_SECRET = "api_key"  # noqa: S105


@dataclass(frozen=True)
class FirstKey:
    """The first key, if known on this machine; `is_new` if it was created just now.

    `warning`: why the configured key is invalid.
    """

    text: str | None = field(repr=False)
    is_new: bool
    warning: str | None = None


class PostgresBackend:
    """The Postgres of the settings, or the embedded one."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self.processes: list[EmbeddedServer[Any]] = []
        self.admin_url = ""
        self.service_url = ""
        self.reader_url: str | None = None

    def open(self, on_migration: MigrationProgress = ignore_progress) -> None:
        """Start the embedded server unless one is given; bring the schema up to date."""
        configured_url = self._settings.database_url
        if configured_url is None:
            self._open_embedded(on_migration)
        else:
            self.service_url = configured_url.get_secret_value()
            self.reader_url = secret_value(self._settings.database_readonly_url)
            self.admin_url = secret_value(self._settings.database_migration_url) or self.service_url
            migrate(self.admin_url, on_migration)

    def _open_embedded(self, on_migration: MigrationProgress) -> None:
        # Here and not above: with a URL given, no embedded server is even imported.
        from reverie.embedded.servers import postgres
        from reverie.embedded.servers.supervised_servers import build_postgres

        settings = self._settings
        process = build_postgres(self._home, settings.postgres_port, settings.postgres_bin)
        self.processes.append(process)
        process.start()
        self.admin_url = process.server.admin_url()
        self.service_url = process.server.service_url()
        migrate(self.admin_url, on_migration)
        postgres.create_service_logins(process.server)
        self.reader_url = process.server.reader_url()

    def ensure_key(self) -> FirstKey:
        """Ensures that the first key exists; returns its text if this machine may know it."""
        configured_key = secret_value(self._settings.api_key)
        if configured_key is not None or not self.processes:
            return self._ensure_external_key(configured_key)
        # Written down before it is made, so that no crash leaves a key that nobody knows.
        stored_key = read_secret(self._home, API_KEY_SECRET)
        if stored_key is None:
            return self._create_key()
        if not re.fullmatch(r"rv_[\w-]{43}", stored_key, re.ASCII):
            path = self._home.secrets / API_KEY_SECRET
            reason = "holds no API key: put the key back, or delete the file to get a new one"
            raise Misconfigured(str(path), reason)
        try:
            ensure_key(self.admin_url, stored_key)
        except RetiredKey:
            # The stored key is invalid for ever; whoever owns this machine still needs one.
            return self._create_key()
        return FirstKey(stored_key, is_new=False)

    def _create_key(self) -> FirstKey:
        text = write_secret(self._home, API_KEY_SECRET, f"rv_{secrets.token_urlsafe(32)}")
        ensure_key(self.admin_url, text)
        return FirstKey(text, is_new=True)

    def _ensure_external_key(self, configured_key: str | None) -> FirstKey:
        try:
            created_key = ensure_key(self.admin_url, configured_key)
        except RetiredKey as error:
            return FirstKey(configured_key, is_new=False, warning=str(error))
        if configured_key is None and created_key is not None:
            write_secret(self._home, API_KEY_SECRET, created_key)
            return FirstKey(created_key, is_new=True)
        return FirstKey(configured_key or read_secret(self._home, API_KEY_SECRET), is_new=False)


class NatsBackend:
    """The NATS of the settings, or the embedded one."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self.processes: list[EmbeddedServer[Any]] = []
        self.url = ""
        self._process: EmbeddedServer[NatsInstance] | None = None

    @property
    def credentials(self) -> NatsCredentials:
        """The credentials of the operator, if the address contains none."""
        settings = self._settings
        return NatsCredentials(settings.nats_creds, settings.ca_file)

    @property
    def replicas(self) -> int:
        """The copies of each stream; the embedded server is one."""
        return 1 if self.processes else self._settings.nats_replicas

    def open(self) -> None:
        """Start the embedded server unless one is given."""
        configured_url = secret_value(self._settings.nats_url)
        if configured_url is not None:
            self.url = configured_url
            return
        from reverie.embedded.servers.supervised_servers import build_nats

        settings = self._settings
        process = self._process = build_nats(self._home, settings.nats_port, settings.nats_bin)
        self.processes.append(process)
        process.start()
        self.url = process.server.url

    def url_for(self, service: str) -> str | None:
        """The address for a service: the embedded server as a separate user, if needed."""
        return self._process.server.url_for(self._home, service) if self._process else self.url


async def open_backends(
    database: PostgresBackend, bus: NatsBackend, on_migration: MigrationProgress = ignore_progress
) -> None:
    """Opens both at once; prepares the schema, streams and consumers.

    Waits for both even if one fails, so that every started server is known and can be stopped.
    """
    outcomes = await asyncio.gather(
        asyncio.to_thread(database.open, on_migration), _open_bus(bus), return_exceptions=True
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def _open_bus(bus: NatsBackend) -> None:
    await asyncio.to_thread(bus.open)
    # Here and not above: Postgres starts while the client of NATS is imported.
    from reverie.bus.streams import ensure_streams

    await ensure_streams(bus.url, bus.replicas, credentials=bus.credentials)


def strip_url_credentials(url: str) -> str:
    """The URL as it may be shown: no user, no password, no options."""
    stripped = []
    for server_url in url.split(","):
        parts = urlsplit(server_url.strip())
        port = f":{parts.port}" if parts.port else ""
        stripped.append(f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}")
    return ",".join(stripped)


def secret_value(secret: SecretStr | None) -> str | None:
    """The text of a secret setting, if it is set."""
    return secret.get_secret_value() if secret is not None else None

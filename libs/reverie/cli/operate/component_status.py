"""Checks the addresses and health of the services, Postgres and NATS."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reverie.domain.core.errors import Unavailable
from reverie.embedded.home import Home, existing_home, read_run_file
from reverie.embedded.lock import is_home_locked
from reverie.embedded.probe import fetch_health, fetch_instance
from reverie.embedded.probe import fetch_nats_info as fetch_server_info
from reverie.embedded.reporting import GATEWAY, SERVICES
from reverie.embedded.servers import nats, postgres
from reverie.embedded.servers.backends import API_KEY_SECRET, secret_value, strip_url_credentials
from reverie.runtime.settings.settings import Settings, base_url, instance_id
from reverie.store.db.server_admin import load_server_facts

NO_ANSWER = "does not answer"
OTHER_INSTANCE = "does not run: another server, or a Reverie of another home folder, answers here"


@dataclass(frozen=True)
class ComponentStatus:
    """A component: its address, whether it is ready, and what is wrong."""

    name: str
    address: str
    ok: bool
    problem: str = ""


@dataclass(frozen=True)
class SystemStatus:
    """All components. `running`: a supervisor or a service of these settings runs."""

    running: bool
    components: list[ComponentStatus]
    key_file: Path | None


def check_components(settings: Settings) -> SystemStatus:
    """Checks all components concurrently, within a few seconds.

    If `gateway_url` is set, checks only that gateway: its other components are on another machine.
    """

    def check(name: str, url: str) -> ComponentStatus:
        # Services on servers of one's own are one system, whatever home folder each has.
        is_embedded = settings.database_url is None
        if is_embedded and fetch_instance(url) not in {None, instance_id(settings.home)}:
            return ComponentStatus(name, url, False, OTHER_INSTANCE)
        health = fetch_health(url)
        return ComponentStatus(name, url, health.is_ready, health.problem)

    if settings.gateway_url is not None:
        # Whose gateway this is does not matter: it was named.
        url = str(settings.gateway_url).rstrip("/")
        health = fetch_health(url)
        gateway = ComponentStatus("gateway", url, health.is_ready, health.problem)
        return SystemStatus(gateway.ok or gateway.problem != NO_ANSWER, [gateway], None)
    home = existing_home(settings.home)
    is_locked = home is not None and is_home_locked(home)
    urls = service_urls(settings, home if is_locked else None)
    with ThreadPoolExecutor() as pool:
        database = pool.submit(check_postgres, settings, home)
        bus = pool.submit(check_nats, settings, home)
        services = list(pool.map(check, urls, urls.values()))
    running = is_locked or any(
        service.problem not in {NO_ANSWER, OTHER_INSTANCE} for service in services
    )
    key_file = home.secrets / API_KEY_SECRET if home else None
    existing_key_file = key_file if key_file and key_file.exists() else None
    return SystemStatus(running, [*services, database.result(), bus.result()], existing_key_file)


def service_urls(settings: Settings, home: Home | None) -> dict[str, str]:
    """Each service's URL: as the supervisor of this home recorded it, else as configured."""
    recorded = (read_run_file(home, "up").get("services") if home else None) or {}
    has_tls = settings.tls_cert is not None
    return {
        name: recorded.get(name)
        or base_url(settings.host, int(getattr(settings, f"{name}_port")), has_tls)
        for name in dict.fromkeys((GATEWAY, *SERVICES, *recorded))
    }


def http_urls(system: SystemStatus) -> dict[str, str]:
    """Maps each component that uses HTTP to its URL."""
    return {
        component.name: component.address
        for component in system.components
        if component.address.startswith("http")
    }


def check_postgres(settings: Settings, home: Home | None) -> ComponentStatus:
    """The external Postgres, or the embedded one of this home."""
    server = postgres.find(home) if home else None
    url = secret_value(settings.database_url) or (server.service_url() if server else None)
    if url is None:
        return ComponentStatus("postgres", "embedded", False, "does not run")
    address = strip_url_credentials(url)
    try:
        load_server_facts(url)
    except Unavailable as error:
        return ComponentStatus("postgres", address, False, error.hint)
    return ComponentStatus("postgres", address, True)


def check_nats(settings: Settings, home: Home | None) -> ComponentStatus:
    """The external NATS, or the embedded one of this home."""
    url = find_nats_url(settings, home)
    if url is None:
        return ComponentStatus("nats", "embedded", False, "does not run")
    address = strip_url_credentials(url)
    try:
        jetstream = bool(fetch_nats_info(url).get("jetstream"))
    except OSError as error:
        return ComponentStatus("nats", address, False, error.strerror or str(error))
    return ComponentStatus("nats", address, jetstream, "" if jetstream else "has no JetStream")


def fetch_nats_info(url: str) -> dict[str, object]:
    """The greeting of the first server of a NATS URL. Raises `OSError`."""
    parsed = urlsplit(url.split(",")[0].strip())
    return fetch_server_info(parsed.hostname or "", parsed.port or 4222)


def find_nats_url(settings: Settings, home: Home | None) -> str | None:
    """The URL of the configured NATS, or of the embedded one that runs."""
    configured = secret_value(settings.nats_url)
    server = nats.find(home) if home and configured is None else None
    return server.url if server else configured

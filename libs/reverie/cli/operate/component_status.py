"""Checks the addresses and health of the services, Postgres and NATS."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from reverie.domain.core.errors import Unavailable
from reverie.embedded.backends import API_KEY_SECRET, strip_url_credentials
from reverie.embedded.home import Home, existing_home, read_run_file
from reverie.embedded.lock import is_home_locked
from reverie.embedded.probe import ServiceHealth, fetch_health
from reverie.embedded.probe import fetch_nats_info as fetch_server_info
from reverie.embedded.reporting import GATEWAY, SERVICES
from reverie.runtime.settings.settings import Settings
from reverie.store.db.server_admin import load_server_facts


@dataclass(frozen=True)
class ComponentStatus:
    """One part: where it is, whether it can work, and what it lacks."""

    name: str
    address: str
    ok: bool
    problem: str = ""


@dataclass(frozen=True)
class SystemStatus:
    """All parts. `running`: a supervisor or a service of these settings is there."""

    running: bool
    components: list[ComponentStatus]
    key_file: Path | None


def check_components(settings: Settings) -> SystemStatus:
    """Ask every part at once; takes at most some seconds.

    Of a gateway that is set (`gateway_url`) it alone: its parts are not this machine's.
    """
    if settings.gateway_url is not None:
        health = fetch_health(url := str(settings.gateway_url).rstrip("/"))
        return SystemStatus(
            health.status is not None, [_build_status("gateway", url, health)], None
        )
    home = existing_home(settings.home)
    is_locked = home is not None and is_home_locked(home)
    urls = service_urls(settings, home if is_locked else None)
    with ThreadPoolExecutor() as pool:
        database = pool.submit(check_postgres, settings, home)
        bus = pool.submit(check_nats, settings, home)
        services = list(pool.map(_check_service, urls, urls.values()))
    running = is_locked or any(
        component.ok or component.problem != "does not answer" for component in services
    )
    key_file = home.secrets / API_KEY_SECRET if home else None
    existing_key_file = key_file if key_file and key_file.exists() else None
    return SystemStatus(running, [*services, database.result(), bus.result()], existing_key_file)


def service_urls(settings: Settings, home: Home | None) -> dict[str, str]:
    """Each service's URL: as the supervisor of this home noted it, else as it is set."""
    recorded = (read_run_file(home, "up").get("services") if home else None) or {}
    names = dict.fromkeys((GATEWAY, *SERVICES, *recorded))
    return {name: recorded.get(name) or _configured_url(settings, name) for name in names}


def _configured_url(settings: Settings, name: str) -> str:
    from reverie.runtime.settings.settings import base_url

    port = int(getattr(settings, f"{name}_port"))
    return base_url(settings.host, port, settings.tls_cert is not None)


def _check_service(name: str, url: str) -> ComponentStatus:
    return _build_status(name, url, fetch_health(url))


def _build_status(name: str, url: str, health: ServiceHealth) -> ComponentStatus:
    return ComponentStatus(name, url, health.is_ready, health.problem)


def check_postgres(settings: Settings, home: Home | None) -> ComponentStatus:
    """The external Postgres, or the embedded one of this home."""
    url = _secret_value(settings.database_url) or _find_embedded_postgres_url(home)
    if url is None:
        return ComponentStatus("postgres", "embedded", False, "does not run")
    try:
        load_server_facts(url)
    except Unavailable as error:
        return ComponentStatus("postgres", strip_url_credentials(url), False, error.hint)
    return ComponentStatus("postgres", strip_url_credentials(url), True)


def check_nats(settings: Settings, home: Home | None) -> ComponentStatus:
    """The external NATS, or the embedded one of this home."""
    url = find_nats_url(settings, home)
    if url is None:
        return ComponentStatus("nats", "embedded", False, "does not run")
    try:
        info = fetch_nats_info(url)
    except OSError as error:
        return ComponentStatus(
            "nats", strip_url_credentials(url), False, error.strerror or str(error)
        )
    jetstream = bool(info.get("jetstream"))
    return ComponentStatus(
        "nats", strip_url_credentials(url), jetstream, "" if jetstream else "has no JetStream"
    )


def fetch_nats_info(url: str) -> dict[str, object]:
    """What the first server of a NATS URL says of itself. Raises `OSError`."""
    parsed = urlsplit(url.split(",")[0].strip())
    return fetch_server_info(parsed.hostname or "", parsed.port or 4222)


def find_nats_url(settings: Settings, home: Home | None) -> str | None:
    """The URL of the NATS that is set, or of the embedded one that runs."""
    configured = _secret_value(settings.nats_url)
    return configured if configured is not None else _find_embedded_nats_url(home)


def _find_embedded_nats_url(home: Home | None) -> str | None:
    from reverie.embedded import nats

    server = nats.find(home) if home else None
    return server.url if server else None


def _find_embedded_postgres_url(home: Home | None) -> str | None:
    from reverie.embedded import postgres

    server = postgres.find(home) if home else None
    return server.service_url() if server else None


def _secret_value(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None

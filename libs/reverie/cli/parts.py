"""The parts of a Reverie as they are seen from outside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from reverie.domain.errors import Unavailable
from reverie.embedded.addresses import GATEWAY, SERVICES
from reverie.embedded.backing import API_KEY, without_password
from reverie.embedded.greeting import greet
from reverie.embedded.home import Home, existing_home, read_note
from reverie.embedded.lock import is_held
from reverie.embedded.probe import Health, ask_ready
from reverie.runtime.settings import Settings
from reverie.store.admin import server_facts


@dataclass(frozen=True)
class Part:
    """One part: where it is, whether it can work, and what it lacks."""

    name: str
    address: str
    ok: bool
    problem: str = ""


@dataclass(frozen=True)
class View:
    """All parts. `running`: a supervisor or a service of these settings is there."""

    running: bool
    parts: list[Part]
    key_file: Path | None


def look(settings: Settings) -> View:
    """Ask every part at once; takes at most some seconds.

    Of a gateway that is set (`gateway_url`) it alone: its parts are not this machine's.
    """
    if settings.gateway_url is not None:
        health = ask_ready(url := str(settings.gateway_url).rstrip("/"))
        return View(health.status is not None, [_part("gateway", url, health)], None)
    home = existing_home(settings.home)
    held = home is not None and is_held(home)
    urls = service_urls(settings, home if held else None)
    with ThreadPoolExecutor() as pool:
        database = pool.submit(postgres_part, settings, home)
        bus = pool.submit(nats_part, settings, home)
        services = list(pool.map(_service, urls, urls.values()))
    running = held or any(p.ok or p.problem != "does not answer" for p in services)
    key_file = home.secrets / API_KEY if home else None
    known = key_file if key_file and key_file.exists() else None
    return View(running, [*services, database.result(), bus.result()], known)


def service_urls(settings: Settings, home: Home | None) -> dict[str, str]:
    """Each service's URL: as the supervisor of this home noted it, else as it is set."""
    noted = (read_note(home, "up").get("services") if home else None) or {}
    names = dict.fromkeys((GATEWAY, *SERVICES, *noted))
    return {n: noted.get(n) or _set_url(settings, n) for n in names}


def _set_url(settings: Settings, name: str) -> str:
    from reverie.runtime.settings import base_url

    port = int(getattr(settings, f"{name}_port"))
    return base_url(settings.host, port, settings.tls_cert is not None)


def _service(name: str, url: str) -> Part:
    return _part(name, url, ask_ready(url))


def _part(name: str, url: str, health: Health) -> Part:
    return Part(name, url, health.ready, health.problem)


def postgres_part(settings: Settings, home: Home | None) -> Part:
    """The external Postgres, or the embedded one of this home."""
    url = _text(settings.database_url) or _embedded_postgres(home)
    if url is None:
        return Part("postgres", "embedded", False, "does not run")
    try:
        server_facts(url)
    except Unavailable as error:
        return Part("postgres", without_password(url), False, error.hint)
    return Part("postgres", without_password(url), True)


def nats_part(settings: Settings, home: Home | None) -> Part:
    """The external NATS, or the embedded one of this home."""
    url = nats_address(settings, home)
    if url is None:
        return Part("nats", "embedded", False, "does not run")
    try:
        info = describe_nats(url)
    except OSError as error:
        return Part("nats", without_password(url), False, error.strerror or str(error))
    jetstream = bool(info.get("jetstream"))
    return Part("nats", without_password(url), jetstream, "" if jetstream else "has no JetStream")


def describe_nats(url: str) -> dict[str, object]:
    """What the first server of a NATS URL says of itself. Raises `OSError`."""
    parts = urlsplit(url.split(",")[0].strip())
    return greet(parts.hostname or "", parts.port or 4222)


def nats_address(settings: Settings, home: Home | None) -> str | None:
    """The URL of the NATS that is set, or of the embedded one that runs."""
    given = _text(settings.nats_url)
    return given if given is not None else _embedded_nats(home)


def _embedded_nats(home: Home | None) -> str | None:
    from reverie.embedded import nats

    found = nats.find(home) if home else None
    return found.url if found else None


def _embedded_postgres(home: Home | None) -> str | None:
    from reverie.embedded import postgres

    found = postgres.find(home) if home else None
    return found.service_url() if found else None


def _text(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None

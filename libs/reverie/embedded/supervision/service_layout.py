"""Chooses the processes of the services, their ports, and the environment of each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, SecretStr

from reverie.domain.core.errors import Misconfigured
from reverie.embedded import ports
from reverie.embedded.reporting import ALL, DERIVE, DREAM_WORKER, SERVICES
from reverie.runtime.settings.settings import PREFIX, Settings

SHUTDOWN_GRACE = 3.0
"""Seconds that requests in flight get at shutdown, so that all ends within ten."""

GRPC = "grpc"
"""The gRPC port of the gateway."""
WITHHELD_SETTINGS = {
    *("api_key", "database_url", "database_migration_url", "database_readonly_url", "nats_url"),
}
"""Settings that no service needs, or that `ServerUrls` gives."""
SERVICE_BY_WORKER = {DERIVE: "ingest", DREAM_WORKER: "dream"}
"""The service of each listener in the process of background work."""


@dataclass(frozen=True)
class ServerUrls:
    """The addresses of Postgres and NATS for the services."""

    database: str = field(repr=False)
    readonly_database: str | None = field(repr=False)
    nats: str | None = field(repr=False)


def process_names(settings: Settings) -> tuple[str, ...]:
    """The processes to start; if `ingest_role` is set, no derivation runs with the services."""
    return (ALL,) if settings.ingest_role else (ALL, DERIVE)


def listener_names(settings: Settings, process: str | None = None) -> tuple[str, ...]:
    """The HTTP listeners, in all processes or in one of them."""
    engine = ("engine",) if settings.engine_enabled else ()
    listeners = {ALL: (*SERVICES, *engine), DERIVE: tuple(SERVICE_BY_WORKER)}
    names = [process] if process else process_names(settings)
    return tuple(listener for name in names for listener in listeners[name])


def choose_ports(settings: Settings) -> dict[str, int]:
    """Chooses a port for each listener: the configured one, or a free one if it is in use or 0.

    Raises `Misconfigured` if the host is no address of this machine.
    """
    chosen: dict[str, int] = {}
    for name in (*listener_names(settings), GRPC):
        taken = {settings.postgres_port, settings.nats_port, *chosen.values()}
        chosen[name] = _choose_port(_configured_port(settings, name), settings.host, taken)
    return chosen


def check_host(settings: Settings) -> None:
    """Raises `Misconfigured` if the host is no address of this machine."""
    _choose_port(0, settings.host, set())


def _choose_port(preferred: int, host: str, taken: set[int]) -> int:
    try:
        return ports.choose_port(preferred, host, taken)
    except OSError as error:
        raise Misconfigured("host", f"cannot listen on {host}: {error.strerror}") from None


def find_moved_ports(settings: Settings, chosen: Mapping[str, int]) -> list[str]:
    """Services that did not get the port that is set."""
    return [
        name for name, port in chosen.items() if _configured_port(settings, name) not in {0, port}
    ]


def _configured_port(settings: Settings, name: str) -> int:
    return 0 if name in SERVICE_BY_WORKER else int(getattr(settings, f"{name}_port"))


def build_environment(
    process: str, settings: Settings, chosen: Mapping[str, int], servers: ServerUrls
) -> dict[str, str]:
    """Builds the environment of a service process: the settings and the server addresses."""
    ports_by_service = {
        name: port for name, port in chosen.items() if name not in SERVICE_BY_WORKER
    }
    if process == DERIVE:
        ports_by_service |= {service: chosen[name] for name, service in SERVICE_BY_WORKER.items()}
    variables = {
        **{name: getattr(settings, name) for name in settings.model_fields_set},
        **dict.fromkeys(WITHHELD_SETTINGS),
        **{f"{service}_port": port for service, port in ports_by_service.items()},
        "home": settings.home,
        "shutdown_timeout": min(settings.shutdown_timeout, SHUTDOWN_GRACE),
        "database_url": servers.database,
        "database_readonly_url": servers.readonly_database,
        "nats_url": servers.nats,
        "lifeline": 1,
    }
    # Variables of Reverie that are not settings of this supervisor are left out.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    own = {
        PREFIX + name.upper(): _to_text(value)
        for name, value in variables.items()
        if value is not None
    }
    return inherited | {"PYTHONUNBUFFERED": "1"} | own


def _to_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=_to_json)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_json(value: object) -> object:
    """A part of a structured setting: a secret as it is, a model by its fields."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else str(value)

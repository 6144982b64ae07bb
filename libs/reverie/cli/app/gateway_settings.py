"""Reads the settings of the gateway and of the folder's project, without loading pydantic."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reverie.agent.gateway.location import find_ca_file, locate_gateway
from reverie.agent.gateway.user_detection import detect_user
from reverie.domain.core.errors import InvalidInput, Misconfigured, Unavailable

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings

ENV_PREFIX = "REVERIE_"
_COMMON_SETTINGS = frozenset({"api_key", "gateway_url", "home", "project", "recall_port", "user"})


@dataclass(frozen=True)
class GatewaySettings:
    """A gateway with its key, the timeout in seconds, the folder's project, the CA file and the
    user."""

    url: str
    key: str
    timeout: float
    project: str | None
    ca: str = ""
    user: str = ""


def read_gateway_settings(home: Path | None, sets: Sequence[str]) -> GatewaySettings:
    """The gateway for commands in this folder. Raises as `resolve_endpoint`."""
    raw = read_raw_settings(home, sets)
    url, key = resolve_endpoint(raw)
    project = raw.get("project")
    ca = find_ca_file(str(raw["home"]), str(raw.get("ca_file") or ""))
    try:
        timeout = float(raw.get("request_timeout") or 30)
    except (TypeError, ValueError):
        raise Misconfigured("request_timeout", "is not a number of seconds") from None
    user = detect_user(str(raw.get("user") or ""), os.environ)
    return GatewaySettings(url, key, timeout, str(project) if project else None, ca, user)


def resolve_endpoint(raw: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the URL and the key of the gateway that these settings select, as in `location`.

    Raises `Unavailable` if none runs, and `InvalidInput` if its key is missing.
    """
    host = str(raw.get("host") or "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
    scheme = "https" if raw.get("tls_cert") else "http"
    location = locate_gateway(
        os.path.realpath(str(raw["home"])),
        str(raw.get("gateway_url") or ""),
        str(raw.get("api_key") or ""),
        f"{scheme}://{host}:{raw.get('recall_port') or 3456}",
    )
    if location.state == "no_key":
        raise InvalidInput("api_key", f"set REVERIE_API_KEY for the gateway at {location.url}")
    if location.state == "starting":
        raise Unavailable("Reverie", "it is still starting: try again in a moment")
    if location.state == "stopped":
        raise Unavailable("Reverie", f"it does not run on {raw['home']}: start `reverie up`")
    return location.url, location.key


def endpoint_from_settings(settings: Settings) -> tuple[str, str]:
    """The URL and the key of the gateway of loaded settings. Raises as `resolve_endpoint`."""
    raw = settings.model_dump(include={"home", "gateway_url", "host", "recall_port", "tls_cert"})
    key = settings.api_key.get_secret_value() if settings.api_key else None
    return resolve_endpoint({**raw, "api_key": key})


def read_raw_settings(home: Path | None, sets: Sequence[str]) -> Mapping[str, Any]:
    """The settings, the nearest layer first and unchecked; `home` is always set."""
    from reverie.runtime.settings.project_file import load_project_file

    flags: dict[str, Any] = parse_assignments(sets) | ({"home": str(home)} if home else {})
    environment = {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(ENV_PREFIX) and value
    }
    project = load_project_file(Path.cwd()).project
    layers = [flags, environment, {"project": project} if project else {}]
    # The settings are slow to import, so those of most calls are known without them.
    if not _COMMON_SETTINGS.issuperset(flags):
        from reverie.runtime.settings.loading import FLAGS, check_setting_names

        check_setting_names(flags, FLAGS)
    folder = ChainMap(*layers).get("home") or "~/.reverie"
    root = str(Path(str(folder)).expanduser())
    return ChainMap({"home": root}, *layers, _read_toml(Path(root) / "config.toml"))


def parse_assignments(sets: Sequence[str]) -> dict[str, str]:
    """The settings that `--set NAME=VALUE` gives. Raises `InvalidInput`."""
    settings: dict[str, str] = {}
    for assignment in sets:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(
                "--set", f"expected NAME=VALUE, as in recall_port=4000, not {assignment!r}"
            )
        settings[name.strip().lower().replace("-", "_")] = value
    return settings


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(str(path), f"is not TOML: {error}") from None
    except OSError as error:
        raise Misconfigured(str(path), f"cannot be read: {error.strerror}") from None

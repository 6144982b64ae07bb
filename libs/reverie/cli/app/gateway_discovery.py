"""Finds the gateway, its key and the folder's project without loading the full settings."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.cli.app.common import parse_assignments
from reverie.contracts.tls import find_ca_file
from reverie.domain.core.errors import InvalidInput, Misconfigured, Unavailable

ENV_PREFIX = "REVERIE_"


@dataclass(frozen=True)
class DiscoveredGateway:
    """A gateway, the key to it, seconds that a call may take, and the folder's project."""

    url: str
    key: str
    timeout: float
    project: str | None
    ca: Path | None = None


def discover_gateway(home: Path | None, sets: Sequence[str] | None) -> DiscoveredGateway:
    """The gateway of this folder. Raises as `resolve_endpoint`."""
    raw = read_raw_settings(home, sets)
    url, key = resolve_endpoint(raw)
    project = raw.get("project")
    ca = find_ca_file(raw.get("ca_file"), Path(str(raw["home"])))
    return DiscoveredGateway(url, key, _parse_timeout(raw), str(project) if project else None, ca)


def resolve_endpoint(raw: Mapping[str, Any]) -> tuple[str, str]:
    """The gateway of these settings, and the key to it.

    A key that is set goes to the address that is set, or to the Reverie that runs on the home
    folder. The key that the home folder keeps opens that one alone. Raises `Unavailable` where
    none runs, `InvalidInput` where there is no key.
    """
    api_key, configured_url = raw.get("api_key"), str(raw.get("gateway_url") or "").rstrip("/")
    is_locked, running_url, home_key = _find_running(Path(str(raw["home"])))
    if configured_url and api_key:
        return _add_scheme(configured_url), str(api_key)
    if configured_url and configured_url != running_url:
        raise InvalidInput("api_key", f"set REVERIE_API_KEY for the gateway at {configured_url}")
    if running_url and (api_key or home_key):
        return running_url, str(api_key or home_key)
    if is_locked:
        raise Unavailable("Reverie", "it is still starting: try again in a moment")
    if api_key:
        return _configured_url(raw), str(api_key)
    raise Unavailable("Reverie", f"it does not run on {raw['home']}: start `reverie up`")


def read_raw_settings(home: Path | None, sets: Sequence[str] | None) -> Mapping[str, Any]:
    """What is set, nearest first, unchecked; `home` is always there."""
    from reverie.runtime.settings.project_file import check_project_file, find_project_file

    flags: dict[str, Any] = dict(parse_assignments(sets or ()))
    flags |= {"home": str(home)} if home else {}
    environment = {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(ENV_PREFIX) and value
    }
    file = find_project_file(Path.cwd())
    layers = [flags, environment, _read_toml(file)]
    check_project_file(file, layers[-1])
    folder = ChainMap(*layers).get("home") or "~/.reverie"
    root = str(Path(str(folder)).expanduser())
    return ChainMap({"home": root}, *layers, _read_toml(Path(root) / "config.toml"))


def read_project_name(folder: Path) -> str | None:
    """The project that a folder's `reverie.toml` names."""
    from reverie.runtime.settings.project_file import find_project_file

    name = _read_toml(find_project_file(folder)).get("project")
    return str(name) if name else None


def _parse_timeout(raw: Mapping[str, Any]) -> float:
    try:
        return float(raw.get("request_timeout") or 30)
    except (TypeError, ValueError):
        raise Misconfigured("request_timeout", "is not a number of seconds") from None


def _add_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _configured_url(raw: Mapping[str, Any]) -> str:
    host = str(raw.get("host") or "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
    scheme = "https" if raw.get("tls_cert") else "http"
    return f"{scheme}://{host}:{raw.get('recall_port') or 3456}"


def _find_running(root: Path) -> tuple[bool, str | None, str | None]:
    """Whether a supervisor holds the home folder, its gateway, and the key that is kept there."""
    from reverie.embedded.home import existing_home, read_run_file, read_secret
    from reverie.embedded.lock import is_home_locked

    home = existing_home(root)
    if home is None or not is_home_locked(home):
        return False, None, None
    url = read_run_file(home, "up").get("gateway")
    return True, str(url) if url else None, read_secret(home, "api_key")


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

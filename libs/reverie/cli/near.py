"""Where the gateway is and which key opens it, without reading all settings.

The sources and their order are those of the settings: flags, the environment, `reverie.toml` of
the project, `config.toml` of the home folder. Values are checked by `reverie doctor` and by the
commands that need them all.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.cli.common import pairs
from reverie.contracts.trust import authority
from reverie.domain.errors import Invalid, Misconfigured, Unavailable

PREFIX = "REVERIE_"


@dataclass(frozen=True)
class Near:
    """A gateway, the key to it, seconds that a call may take, and the folder's project."""

    url: str
    key: str
    seconds: float
    project: str | None
    ca: Path | None = None


def near(home: Path | None, sets: Sequence[str] | None) -> Near:
    """The gateway of this folder. Raises as `place_of`."""
    said = settings_near(home, sets)
    url, key = place_of(said)
    project = said.get("project")
    ca = authority(said.get("ca"), Path(str(said["home"])))
    return Near(url, key, _seconds(said), str(project) if project else None, ca)


def place_of(said: Mapping[str, Any]) -> tuple[str, str]:
    """The gateway of these settings, and the key to it.

    A key that is set goes to the address that is set, or to the Reverie that runs on the home
    folder. The key that the home folder keeps opens that one alone. Raises `Unavailable` where
    none runs, `Invalid` where there is no key.
    """
    own, address = said.get("api_key"), str(said.get("gateway_url") or "").rstrip("/")
    held, running, kept = _running(Path(str(said["home"])))
    if address and own:
        return _with_scheme(address), str(own)
    if address and address != running:
        raise Invalid("api_key", f"set REVERIE_API_KEY for the gateway at {address}")
    if running and (own or kept):
        return running, str(own or kept)
    if held:
        raise Unavailable("Reverie", "it is still starting: try again in a moment")
    if own:
        return _set_url(said), str(own)
    raise Unavailable("Reverie", f"it does not run on {said['home']}: start `reverie up`")


def settings_near(home: Path | None, sets: Sequence[str] | None) -> Mapping[str, Any]:
    """What is set, nearest first, unchecked; `home` is always there."""
    from reverie.runtime.project_file import check_project_file, project_file

    flags: dict[str, Any] = dict(pairs(sets or ()))
    flags |= {"home": str(home)} if home else {}
    environment = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and value
    }
    file = project_file(Path.cwd())
    layers = [flags, environment, _toml(file)]
    check_project_file(file, layers[-1])
    folder = ChainMap(*layers).get("home") or "~/.reverie"
    root = str(Path(str(folder)).expanduser())
    return ChainMap({"home": root}, *layers, _toml(Path(root) / "config.toml"))


def named_in(folder: Path) -> str | None:
    """The project that a folder's `reverie.toml` names."""
    from reverie.runtime.project_file import project_file

    found = _toml(project_file(folder)).get("project")
    return str(found) if found else None


def _seconds(said: Mapping[str, Any]) -> float:
    try:
        return float(said.get("request_timeout") or 30)
    except (TypeError, ValueError):
        raise Misconfigured("request_timeout", "is not a number of seconds") from None


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _set_url(said: Mapping[str, Any]) -> str:
    host = str(said.get("host") or "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
    scheme = "https" if said.get("tls_cert") else "http"
    return f"{scheme}://{host}:{said.get('recall_port') or 3456}"


def _running(root: Path) -> tuple[bool, str | None, str | None]:
    """Whether a supervisor holds the home folder, its gateway, and the key that is kept there."""
    from reverie.embedded.home import existing_home, read_note, read_secret
    from reverie.embedded.lock import is_held

    home = existing_home(root)
    if home is None or not is_held(home):
        return False, None, None
    url = read_note(home, "up").get("gateway")
    return True, str(url) if url else None, read_secret(home, "api_key")


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(str(path), f"is not TOML: {error}") from None
    except OSError as error:
        raise Misconfigured(str(path), f"cannot be read: {error.strerror}") from None

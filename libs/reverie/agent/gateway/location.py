"""Finds the gateway and its key; hooks, commands and the MCP server share this one rule.

A configured key is sent to the configured URL, else to the Reverie that runs on the home folder.
The keys in a home folder are sent only to the Reverie that runs on that home folder: that of the
agent, else the first key. A configured key that is this first key counts as none.

A hook waits for these imports, so only light modules of the standard library are used.
"""

from __future__ import annotations

import fcntl
import json
import os

from reverie.agent.gateway.agent_keys import find_agent_key
from reverie.agent.gateway.user_detection import detect_user

# Not imported from `typing`, which is slow to import: a hook starts at every turn.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    State = Literal["configured", "running", "starting", "default", "no_key", "stopped"]

DEFAULT_URL = "http://127.0.0.1:3456"


class GatewayLocation:
    """The URL of a gateway, and its key.

    `state`: `configured` by URL and key; `running` or `starting` on the home folder; `default`, a
    key without a URL while nothing runs on the home folder; `no_key`, a configured URL whose key is
    missing; `stopped`. The key is empty for `no_key`, `stopped` and `starting`.
    """

    def __init__(self, state: State, url: str = "", key: str = "") -> None:
        self.state = state
        self.url = url
        self.key = key


def locate_gateway(
    home: str,
    configured_url: str,
    configured_key: str,
    default_url: str = DEFAULT_URL,
    agent: str = "",
    project: str = "",
) -> GatewayLocation:
    """The gateway of these settings; an empty setting is one that is not set.

    `agent` and `project` choose the key among those of the home folder.
    """
    url = normalize_url(configured_url)
    if url and configured_key:
        return GatewayLocation("configured", url, configured_key)
    locked = is_home_locked(home)
    running_url = str(read_run_note(home).get("gateway") or "") if locked else ""
    if url and url != running_url:
        return GatewayLocation("no_key", url)
    key = configured_key
    if locked and key in ("", first_key := read_first_key(home)):
        # A shell that exports the first key for its user starts agents, too: they use their own.
        key = find_agent_key(home, agent, project) or first_key
    if running_url and key:
        return GatewayLocation("running", running_url, key)
    if locked:
        return GatewayLocation("starting")
    if configured_key:
        return GatewayLocation("default", default_url, configured_key)
    return GatewayLocation("stopped")


def locate_from_environment(
    environ: Mapping[str, str], agent: str = "", project: str = ""
) -> tuple[GatewayLocation, str]:
    """Returns the gateway of the environment and of the home folder's `config.toml`, with its CA
    file.

    Settings of the working folder are ignored. Hooks run unasked in any folder, so a folder must
    not choose the host that receives the key.
    """
    home = resolve_home(environ)
    config = _read_config(os.path.join(home, "config.toml"))
    url = str(environ.get("REVERIE_GATEWAY_URL") or config.get("gateway_url") or "")
    key = str(environ.get("REVERIE_API_KEY") or config.get("api_key") or "")
    ca = str(environ.get("REVERIE_CA_FILE") or config.get("ca_file") or "")
    location = locate_gateway(home, url, key, agent=agent, project=project)
    return location, find_ca_file(home, ca)


def user_from_environment(environ: Mapping[str, str]) -> str:
    """The user of this machine, as the environment, `config.toml` or git says."""
    config = _read_config(os.path.join(resolve_home(environ), "config.toml"))
    return detect_user(str(config.get("user") or ""), environ)


def resolve_home(environ: Mapping[str, str]) -> str:
    """Returns the folder that contains all data."""
    return os.path.abspath(os.path.expanduser(environ.get("REVERIE_HOME") or "~/.reverie"))


def find_ca_file(home: str, configured: str) -> str:
    """The configured file of certificate authorities, else that of the home folder, or ""."""
    if configured:
        return os.path.join(home, os.path.expanduser(configured))
    local_ca = os.path.join(home, "tls", "ca.pem")
    return local_ca if os.path.exists(local_ca) else ""


def normalize_url(url: str) -> str:
    """A URL without a slash at its end, and with a scheme."""
    url = url.rstrip("/")
    return url if "://" in url or not url else f"http://{url}"


def is_home_locked(home: str) -> bool:
    """Whether a supervisor runs on this home folder.

    Without this check, another program could receive the key at the recorded port.
    """
    try:
        fd = os.open(os.path.join(home, "run", "up.lock"), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_run_note(home: str) -> dict[str, Any]:
    """Returns the run file that the supervisor of this home folder wrote."""
    try:
        value = json.loads(_read_text(os.path.join(home, "run", "up.json")))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def read_first_key(home: str) -> str:
    """The administrator's key that the first start on this home folder made, or ""."""
    return _read_text(os.path.join(home, "secrets", "api_key"))


def _read_config(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib

    try:
        return tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError:
        return {}


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""

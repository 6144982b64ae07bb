"""Where settings are read from: what is said nearer wins.

A flag, then the environment (`REVERIE_*`), then `reverie.toml` of the project, then
`config.toml` in the home folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource, SettingsError

from reverie.domain.errors import Misconfigured
from reverie.runtime.project_file import check_project_file, project_file
from reverie.runtime.settings import PREFIX, Settings, is_typed

USER_FILE = "config.toml"
FLAGS = "the flags"
ENVIRONMENT = "the environment"
_PATHS = frozenset(key for key in Settings.model_fields if is_typed(key, Path))


@dataclass(frozen=True)
class Layer:
    """Values of one source; `name` is what a person is told, `folder` anchors relative paths."""

    name: str
    values: Mapping[str, Any]
    folder: Path | None = None


def load_settings(
    overrides: Mapping[str, object] | None = None, project_dir: Path | None = None
) -> Settings:
    """The settings of this process. An override of None is a flag that was not given.

    Raises `Misconfigured` naming the source, the key and what is allowed.
    """
    near = [
        Layer(FLAGS, {k: v for k, v in (overrides or {}).items() if v is not None}),
        Layer(ENVIRONMENT, _environment()),
        _project_layer(project_file(project_dir or Path.cwd())),
    ]
    layers = [*near, _user_layer(_home(near))]
    for layer in layers:
        _check_keys(layer)
    return _validated(layers)


def _environment() -> Mapping[str, Any]:
    """What the environment sets; a map is written as JSON."""
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise Misconfigured("half_life_days", f"is not a JSON object ({ENVIRONMENT})") from error


def _home(layers: list[Layer]) -> Path:
    """Where the user file lies: the home folder that the nearer layers name."""
    given = _chosen(layers).get("home")
    return Path(str(given[1])).expanduser() if given else Path.home() / ".reverie"


def _project_layer(path: Path) -> Layer:
    layer = _file_layer(path)
    check_project_file(path, layer.values)
    return layer


def _user_layer(home: Path) -> Layer:
    layer = _file_layer(home / USER_FILE)
    if "home" in layer.values:
        raise Misconfigured("home", f"cannot be set in {layer.name}, which lies in it")
    return layer


def _file_layer(path: Path) -> Layer:
    try:
        return Layer(str(path), tomllib.loads(path.read_text("utf-8")), path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return Layer(str(path), {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(str(path), f"is not TOML: {error}") from None
    except OSError as error:
        hint = "set REVERIE_HOME to a folder of yours, or mend its modes"
        raise Misconfigured(str(path), f"cannot be read: {error.strerror}; {hint}") from None


def _check_keys(layer: Layer) -> None:
    for key, value in layer.values.items():
        if key not in Settings.model_fields:
            raise Misconfigured(key, f"is no setting (in {layer.name}){_advice(key, value)}")


def _advice(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return "; settings have no tables, write them at the top level"
    near = get_close_matches(key.lower(), Settings.model_fields, n=1)
    known = ", ".join(sorted(Settings.model_fields))
    return f"; did you mean {near[0]}?" if near else f"; settings are {known}"


def _chosen(layers: list[Layer]) -> dict[str, tuple[Layer, Any]]:
    """Each key with the nearest layer that names it, and its value there."""
    return {
        key: (layer, _anchored(key, value, layer.folder))
        for layer in reversed(layers)
        for key, value in layer.values.items()
    }


def _anchored(key: str, value: Any, folder: Path | None) -> Any:
    """A relative path in a file is meant from that file's folder."""
    if folder is None or not isinstance(value, str) or key not in _PATHS:
        return value
    return folder / Path(value).expanduser()


def _validated(layers: list[Layer]) -> Settings:
    chosen = _chosen(layers)
    try:
        settings = Settings.model_validate({key: value for key, (_, value) in chosen.items()})
    except ValidationError as error:
        raise _misconfigured(error.errors(include_url=False)[0], chosen) from None
    if settings.pool_min > settings.pool_max:
        raise Misconfigured("pool_min", f"must not exceed pool_max ({settings.pool_max})")
    return settings


def _misconfigured(error: ErrorDetails, chosen: Mapping[str, tuple[Layer, Any]]) -> Misconfigured:
    key = str(error["loc"][0])
    source = chosen[key][0].name
    where = f"{PREFIX}{key.upper()} in {source}" if source == ENVIRONMENT else f"in {source}"
    reason = error["msg"].removeprefix("Value error, ")
    return Misconfigured(key, f"{reason[:1].lower()}{reason[1:]} ({where})")

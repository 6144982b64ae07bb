"""Loads settings from flags, environment, project file and user file; describes each one."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource, SettingsError

from reverie.domain.core.errors import Misconfigured
from reverie.runtime.settings.project_file import load_project_file
from reverie.runtime.settings.settings import INTERNAL_VARIABLES, PREFIX, Settings, has_type

USER_FILE = "config.toml"
FLAGS = "the flags"
ENVIRONMENT = "the environment"
_PATH_SETTINGS = frozenset(key for key in Settings.model_fields if has_type(key, Path))


@dataclass(frozen=True)
class SettingsLayer:
    """The values of one source; `name` is shown in messages, `folder` is the base of relative
    paths.
    """

    name: str
    values: Mapping[str, Any]
    folder: Path | None = None


def load_settings(
    overrides: Mapping[str, object] | None = None, project_dir: Path | None = None
) -> Settings:
    """The settings of this process. An override of None is a flag that was not given.

    Raises `Misconfigured` naming the source, the key and what is allowed.
    """
    upper_layers = [
        SettingsLayer(
            FLAGS,
            {
                key: _parse_structure(key, value)
                for key, value in (overrides or {}).items()
                if value is not None
            },
        ),
        SettingsLayer(ENVIRONMENT, _environment()),
        _project_layer(project_dir or Path.cwd()),
    ]
    # The user file is in the home folder that the layers of higher priority name.
    _, home = _merge_layers(upper_layers).get("home", (None, Path.home() / ".reverie"))
    user_layer = _file_layer(Path(str(home)).expanduser() / USER_FILE)
    if "home" in user_layer.values:
        raise Misconfigured("home", f"cannot be set in {user_layer.name}, which lies in it")
    layers = [*upper_layers, user_layer]
    for layer in layers:
        check_setting_names(layer.values, layer.name)
    chosen = _merge_layers(layers)
    try:
        return Settings.model_validate({key: value for key, (_, value) in chosen.items()})
    except ValidationError as error:
        raise _misconfigured_error(error.errors(include_url=False)[0], chosen) from None


def check_setting_names(values: Mapping[str, Any], source: str) -> None:
    """Raises `Misconfigured` where a source sets what is no setting."""
    for key, value in values.items():
        if key not in Settings.model_fields:
            raise Misconfigured(key, f"is no setting (in {source}){_unknown_key_hint(key, value)}")


def _parse_structure(key: str, value: object) -> object:
    """The value of a flag; a map or a list is written as JSON, as in the environment."""
    field = Settings.model_fields.get(key)
    origin = get_origin(field.annotation) if field else None
    if not isinstance(value, str) or origin not in {dict, list, tuple}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise Misconfigured(key, f"is not a JSON object (in {FLAGS})") from None


def _environment() -> Mapping[str, Any]:
    """Reads the settings of the environment; a map is written as JSON."""
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        # The error names the setting in its message alone.
        name = str(error).split('"')[1]
        raise Misconfigured(name, f"is not a JSON object ({ENVIRONMENT})") from error


def _project_layer(folder: Path) -> SettingsLayer:
    file = load_project_file(folder)
    return SettingsLayer(file.path, {"project": file.project} if file.project else {})


def _file_layer(path: Path) -> SettingsLayer:
    try:
        return SettingsLayer(str(path), tomllib.loads(path.read_text("utf-8")), path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return SettingsLayer(str(path), {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(str(path), f"is not TOML: {error}") from None
    except OSError as error:
        hint = "set REVERIE_HOME to a folder of yours, or mend its modes"
        raise Misconfigured(str(path), f"cannot be read: {error.strerror}; {hint}") from None


def _unknown_key_hint(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return "; settings have no tables, write them at the top level"
    suggestions = get_close_matches(key.lower(), Settings.model_fields, n=1)
    reference = "; docs/reference/settings.md lists them"
    return f"; did you mean {suggestions[0]}?" if suggestions else reference


def _merge_layers(layers: list[SettingsLayer]) -> dict[str, tuple[SettingsLayer, Any]]:
    """Each key with the nearest layer that names it, and its value there."""
    return {
        key: (layer, _resolve_relative(key, value, layer.folder))
        for layer in reversed(layers)
        for key, value in layer.values.items()
    }


def _resolve_relative(key: str, value: Any, folder: Path | None) -> Any:
    """A relative path in a file is meant from that file's folder."""
    if folder is None or not isinstance(value, str) or key not in _PATH_SETTINGS:
        return value
    return folder / Path(value).expanduser()


def _misconfigured_error(
    error: ErrorDetails, chosen: Mapping[str, tuple[SettingsLayer, Any]]
) -> Misconfigured:
    key = str(error["loc"][0])
    source = chosen[key][0].name
    location = f"{PREFIX}{key.upper()} in {source}" if source == ENVIRONMENT else f"in {source}"
    reason = error["msg"].removeprefix("Value error, ")
    return Misconfigured(key, f"{reason[:1].lower()}{reason[1:]} ({location})")


@dataclass(frozen=True)
class SettingDoc:
    """One setting as its documentation shows it."""

    name: str
    variable: str
    default: str
    description: str
    secret: bool


def describe_settings() -> Iterator[SettingDoc]:
    """All settings in the order of their declaration."""
    for name, info in Settings.model_fields.items():
        default = "~/.reverie" if name == "home" else info.default
        yield SettingDoc(
            name,
            f"{PREFIX}{name.upper()}",
            "unset" if default is None else str(default),
            info.description or "",
            has_type(name, SecretStr),
        )


def find_unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Finds variables that look like settings and are not, with the nearest existing name."""
    known_names = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | INTERNAL_VARIABLES
    variables = os.environ if environ is None else environ
    unknown = [name for name in variables if name.startswith(PREFIX) and name not in known_names]
    return {name: next(iter(get_close_matches(name, known_names, n=1)), None) for name in unknown}

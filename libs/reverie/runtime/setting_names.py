"""What settings there are, by name: for the pages that list them and for names that are none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import SecretStr

from reverie.runtime.settings import PREFIX, SIGNALS, Settings, is_typed


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
            is_typed(name, SecretStr),
        )


def stray_variables(environ: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Variables that look like settings and are none, with the nearest one that is."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | SIGNALS
    given = os.environ if environ is None else environ
    stray = [name for name in given if name.startswith(PREFIX) and name not in known]
    return {name: next(iter(get_close_matches(name, known, n=1)), None) for name in stray}

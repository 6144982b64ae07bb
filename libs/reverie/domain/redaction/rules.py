"""Loads the rules of credentials from the TOML files in `rules/`."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reverie.domain.redaction.matching import PASSWORD


@dataclass(frozen=True)
class RedactionRule:
    """One rule, in the shape of gitleaks' rules; the TOML files say what is special of theirs."""

    id: str
    description: str
    regex: str
    kind: str = PASSWORD
    prefixes: Sequence[str] = ()
    keywords: Sequence[str] = ()
    check: str | None = None
    form: str = "env"


def load_rules(name: str) -> tuple[RedactionRule, ...]:
    """The rules of a file, in its order."""
    return tuple(RedactionRule(**entry) for entry in _load_file(name)["rules"])


def load_allowlist(name: str) -> str:
    """An expression for what is no credential in spite of the rules of the file."""
    return "|".join(_load_file(name)["allowlist"]["regexes"])


def _load_file(name: str) -> dict[str, Any]:
    data = pkgutil.get_data(__package__ or "", f"rules/{name}.toml")
    assert data is not None
    return tomllib.loads(data.decode())

"""Finds the project's `reverie.toml` and checks which settings it may set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reverie.domain.core.errors import Misconfigured

PROJECT_FILE = "reverie.toml"
USER_ONLY_SETTINGS = frozenset({"ca_file", "gateway_url", "home", "nats_bin", "postgres_bin"})
"""What it cannot set: which programs run, where data lies, where keys and memories are sent."""


def find_project_file(start: Path) -> Path:
    """The file of the project that a folder lies in; where there is none, where it would be.

    It is looked for upwards, to the top of the clone or, outside of one, in the folder alone.
    """
    folder = start.absolute()
    ancestors = (folder, *folder.parents)
    root = next((parent for parent in ancestors if (parent / ".git").exists()), folder)
    searched = ancestors[: ancestors.index(root) + 1]
    location = next((parent for parent in searched if (parent / PROJECT_FILE).is_file()), root)
    return location / PROJECT_FILE


def check_project_file(path: Path, names: Iterable[str]) -> None:
    """Raises `Misconfigured` where a project's file sets what it cannot."""
    for name in sorted(USER_ONLY_SETTINGS.intersection(names)):
        reason = f"cannot be set by a project, as {path} does: set REVERIE_{name.upper()} instead"
        raise Misconfigured(name, reason)

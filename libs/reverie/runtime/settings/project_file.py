"""Finds the project's `reverie.toml` and checks which settings it may set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reverie.domain.core.errors import Misconfigured

PROJECT_FILE = "reverie.toml"
USER_ONLY_SETTINGS = frozenset({"ca_file", "gateway_url", "home", "nats_bin", "postgres_bin"})
"""Settings that a project file may not contain: programs, data folders, and targets of keys and
memories.
"""


def find_project_file(start: Path) -> Path:
    """Finds the project file of a folder; if there is none, returns the path where it belongs.

    The search goes upwards to the top of the clone; outside of a clone, only the folder is
    searched.
    """
    folder = start.absolute()
    ancestors = (folder, *folder.parents)
    root = next((parent for parent in ancestors if (parent / ".git").exists()), folder)
    searched = ancestors[: ancestors.index(root) + 1]
    location = next((parent for parent in searched if (parent / PROJECT_FILE).is_file()), root)
    return location / PROJECT_FILE


def check_project_file(path: Path, names: Iterable[str]) -> None:
    """Raises `Misconfigured` if a project file contains a setting that it may not."""
    for name in sorted(USER_ONLY_SETTINGS.intersection(names)):
        reason = f"cannot be set by a project, as {path} does: set REVERIE_{name.upper()} instead"
        raise Misconfigured(name, reason)

"""The file in a project's folder that says whose memories are meant there, and other settings.

Whoever wrote the project wrote the file, and a clone comes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reverie.domain.errors import Misconfigured

PROJECT_FILE = "reverie.toml"
WITHHELD = frozenset({"ca", "gateway_url", "home", "nats_bin", "postgres_bin"})
"""What it cannot set: which programs run, where data lies, where keys and memories are sent."""


def project_file(start: Path) -> Path:
    """The file of the project that a folder lies in; where there is none, where it would be.

    It is looked for upwards, to the top of the clone or, outside of one, in the folder alone.
    """
    folder = start.absolute()
    above = (folder, *folder.parents)
    top = next((at for at in above if (at / ".git").exists()), folder)
    within = above[: above.index(top) + 1]
    found = next((at for at in within if (at / PROJECT_FILE).is_file()), top)
    return found / PROJECT_FILE


def check_project_file(path: Path, names: Iterable[str]) -> None:
    """Raises `Misconfigured` where a project's file sets what it cannot."""
    for name in sorted(WITHHELD.intersection(names)):
        reason = f"cannot be set by a project, as {path} does: set REVERIE_{name.upper()} instead"
        raise Misconfigured(name, reason)

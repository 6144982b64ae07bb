"""The file in a project's folder that says whose memories are meant there, and other settings."""

from __future__ import annotations

from pathlib import Path

PROJECT_FILE = "reverie.toml"


def project_file(start: Path) -> Path:
    """The file of the project that a folder lies in; where there is none, where it would be.

    It is looked for upwards, to the top of the clone or, outside of one, in the folder alone.
    """
    folder = start.absolute()
    for at in (folder, *folder.parents):
        if (at / PROJECT_FILE).is_file():
            return at / PROJECT_FILE
        if (at / ".git").exists():
            return at / PROJECT_FILE
    return folder / PROJECT_FILE

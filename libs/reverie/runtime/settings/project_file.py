"""Loads the project file of a folder for commands and services. It imports no pydantic."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from reverie.contracts.project_file import (
    ProjectFile,
    UnusableProjectFile,
    find_project_file,
    read_project_file,
)
from reverie.domain.core.errors import Misconfigured
from reverie.domain.text.control_characters import strip_control_characters


def load_project_file(folder: Path) -> ProjectFile:
    """Loads the project file of a folder, and warns once of what it may not set.

    Raises `Misconfigured` if it cannot be used.
    """
    path = find_project_file(str(folder))
    try:
        file = read_project_file(path)
    except UnusableProjectFile as error:
        raise Misconfigured(path, str(error)) from None
    if file.warning:
        _warn_once(file.warning)
    return file


@cache
def _warn_once(text: str) -> None:
    sys.stderr.write(f"reverie: {strip_control_characters(text)}\n")

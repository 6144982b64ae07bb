"""Resolves paths in a clone without following links, which the project's author chose."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from reverie.domain.core.errors import InvalidInput


def resolve_inside(root: Path, path: Path) -> Path:
    """Resolves a path inside the project.

    Raises `InvalidInput` if it lies outside, passes through a symbolic link, or names a pipe or a
    device, which a read would wait for.
    """
    full = Path(os.path.normpath(root / path))
    if not full.is_relative_to(root) or full == root:
        raise InvalidInput("file", f"{path} lies outside of the project {root}")
    parent = full
    while parent != root:
        if parent.is_symlink():
            raise InvalidInput(
                "file",
                f"{parent.relative_to(root)} is a link, and a link may lead out of {root}: "
                "name the file itself, or replace the link by a file",
            )
        parent = parent.parent
    if full.exists() and not (full.is_file() or full.is_dir()):
        raise InvalidInput(
            "file", f"{full.relative_to(root)} is not a regular file: remove it, or name another"
        )
    return full


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if there is none that can be read."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def replace_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replaces a file at once, and keeps its mode; a link at its place is replaced, not followed.

    The name of the temporary file is random, so that a clone cannot put a link there.
    """
    if mode is None:
        with suppress(OSError):
            mode = path.lstat().st_mode & 0o777
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".reverie-")
    try:
        with open(fd, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644 if mode is None else mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise

"""Reads and writes the files of a tenant's folder for the tools of agents."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from reverie_services.engine.folder_walk import WalkTooLong, walk_files

MAX_FILE_BYTES = 1024 * 1024
MAX_MATCHES = 100
MAX_ENTRIES = 500
WALK_SECONDS = 10.0
"""Seconds after which a walk through a huge folder returns what it has found."""
MORE = "(there may be more: ask with a narrower pattern)"


class Workspace:
    """The files of a folder. A path that leads out of it, also by a link, is refused."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()

    @classmethod
    def of_tenant(cls, folder: Path, tenant: int) -> Workspace:
        """The files of one tenant: a folder of its own, by its number, made on first use."""
        own = folder / str(tenant)
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(own)

    def resolve(self, path: str) -> Path:
        """The place of a path. Raises `ValueError` outside the folder."""
        place = (self.root / path).resolve()
        if not place.is_relative_to(self.root):
            raise ValueError(f"{path} lies outside the folder")
        return place

    async def read(self, path: str, first_line: int, lines: int) -> str:
        """Lines of a file, numbered."""
        text = await asyncio.to_thread(_read_text, self.resolve(path))
        numbered = enumerate(text.splitlines(), 1)
        first = max(first_line, 1)
        chosen = islice(numbered, first - 1, first - 1 + max(lines, 0))
        return "\n".join(f"{number}\t{line}" for number, line in chosen) or "(no lines there)"

    async def find(self, pattern: str) -> str:
        """Paths that match a pattern."""
        return await asyncio.to_thread(_list_lines, self._walk(pattern), MAX_ENTRIES)

    async def search(self, text: str, pattern: str) -> str:
        """Lines that contain a text."""
        return await asyncio.to_thread(_list_lines, self._grep(text, pattern), MAX_MATCHES)

    async def write(self, path: str, content: str) -> str:
        """Replaces a file in one step."""
        place = self.resolve(path)
        await asyncio.to_thread(_write_text, place, content)
        return f"wrote {len(content.encode())} bytes to {place.relative_to(self.root)}"

    def _walk(self, pattern: str) -> Iterator[str]:
        """Paths of files that match, from the folder."""
        parts = Path(pattern).parts
        if pattern.startswith("/") or ".." in parts:
            raise ValueError(f"{pattern} lies outside the folder")
        for place in walk_files(self.root, parts, WALK_SECONDS):
            if place.is_file() and place.resolve().is_relative_to(self.root):
                yield str(place.relative_to(self.root))

    def _grep(self, text: str, pattern: str) -> Iterator[str]:
        for path in self._walk(pattern):
            with suppress(OSError, ValueError):
                for number, line in enumerate(_read_text(self.root / path).splitlines(), 1):
                    if text in line:
                        yield f"{path}:{number}: {line.strip()[:200]}"


def _list_lines(lines: Iterator[str], limit: int) -> str:
    """The first lines; the last one says if there are more."""
    found: list[str] = []
    try:
        found += islice(lines, limit)
        is_over = next(lines, None) is None
    except WalkTooLong:
        is_over = False
    return "\n".join([*found, *([] if is_over else [MORE])]) or "(none)"


def _read_text(place: Path) -> str:
    """The text of a regular file. To read anything else, such as a pipe, may never end."""
    # Not blocking: it may become a pipe before it is opened.
    handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"it holds more than {MAX_FILE_BYTES} bytes")
    return data.decode("utf-8")


def _write_text(place: Path, content: str) -> None:
    """Writes a temporary file with a random name beside it, and renames it.

    So it follows no link, and two writers share nothing. The file keeps its mode.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o644
    handle, partial = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, mode)
            file.write(content)
        os.replace(partial, place)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise

"""Files of one folder."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from contextlib import suppress
from itertools import islice
from pathlib import Path

MAX_FILE_BYTES = 1024 * 1024
MAX_MATCHES = 100
MAX_ENTRIES = 500


class Workspace:
    """Files of a folder. A path that leads out of it, also by a link, is refused."""

    def __init__(self, folder: Path) -> None:
        self._root = folder.resolve()

    @classmethod
    def of_tenant(cls, folder: Path, tenant: int) -> Workspace:
        """The files of one tenant: a folder of its own, by its number, made on first use."""
        own = folder / str(tenant)
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(own)

    def resolve(self, path: str) -> Path:
        """The place of a path. Raises `ValueError` outside the folder."""
        place = (self._root / path).resolve()
        if not place.is_relative_to(self._root):
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
        paths = await asyncio.to_thread(self._find, pattern)
        return "\n".join(paths[:MAX_ENTRIES]) or "(none)"

    async def search(self, text: str, pattern: str) -> str:
        """Lines that contain a text."""
        return await asyncio.to_thread(self._search, text, pattern)

    async def write(self, path: str, content: str) -> str:
        """Replaces a file in one step."""
        place = self.resolve(path)
        await asyncio.to_thread(_write_text, place, content)
        return f"wrote {len(content.encode())} bytes to {place.relative_to(self._root)}"

    def _find(self, pattern: str) -> list[str]:
        if pattern.startswith("/") or ".." in Path(pattern).parts:
            raise ValueError(f"{pattern} lies outside the folder")
        found = (place for place in self._root.glob(pattern) if place.is_file())
        inside = (place for place in found if place.resolve().is_relative_to(self._root))
        return sorted(str(place.relative_to(self._root)) for place in inside)

    def _search(self, text: str, pattern: str) -> str:
        matches: list[str] = []
        for path in self._find(pattern):
            with suppress(OSError, ValueError):
                lines = _read_text(self._root / path).splitlines()
                matches += [
                    f"{path}:{number}: {line.strip()[:200]}"
                    for number, line in enumerate(lines, 1)
                    if text in line
                ]
            if len(matches) >= MAX_MATCHES:
                break
        return "\n".join(matches[:MAX_MATCHES]) or "(none)"


def _read_text(place: Path) -> str:
    if place.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"it holds more than {MAX_FILE_BYTES} bytes")
    return place.read_text(encoding="utf-8")


def _write_text(place: Path, content: str) -> None:
    """Writes beside the file and renames: the new file is not opened by a name one can foresee.

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

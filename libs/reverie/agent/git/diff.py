"""Parses the output of `git diff-tree --raw -p -z --unified=0`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

DiffStatus = Literal["added", "modified", "deleted", "renamed", "copied", "mode"]

_STATUS_BY_LETTER: Final[dict[str, DiffStatus]] = {
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "modified",
}
_HUNK_HEADER: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_FILE_TYPE_MASK: Final = 0o170000
_REGULAR_FILE: Final = 0o100000


@dataclass
class RawHunk:
    """A hunk with its lines, without their line ends."""

    line_ranges: tuple[int, int, int, int]
    header: str
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass
class DiffEntry:
    """A file that differs. `is_text`: a file of lines on both sides."""

    status: DiffStatus
    path: str
    old_path: str | None
    old_blob: str
    new_blob: str
    similarity: float | None
    is_text: bool
    hunks: list[RawHunk] = field(default_factory=list)


def parse_diff(output: bytes) -> list[DiffEntry]:
    """The files of a comparison in git's order."""
    names, _, patch = output.partition(b"\0\0")
    sections = _split_sections(patch)
    entries = []
    for letter, entry in _parse_entries(names.split(b"\0")):
        section = next(sections, [])
        if letter == "T":
            next(sections, None)
            entry.is_text = False
        if any(line.startswith(b"Binary files ") for line in section):
            entry.is_text = False
        if entry.is_text:
            entry.hunks = list(_parse_hunks(section))
        entries.append(entry)
    return entries


def _parse_entries(parts: list[bytes]) -> Iterator[tuple[str, DiffEntry]]:
    """The raw lines: modes, blobs and a letter; then one path, or two."""
    remaining = iter(part for part in parts if part)
    for header in remaining:
        old_mode, new_mode, old, new, letter = header.decode().removeprefix(":").split()
        first = next(remaining).decode(errors="replace")
        second = next(remaining).decode(errors="replace") if letter[0] in "RC" else None
        status = _STATUS_BY_LETTER.get(letter[0], "modified")
        if letter[0] == "M" and old == new:
            status = "mode"
        yield (
            letter[0],
            DiffEntry(
                status=status,
                path=second or first,
                old_path=first if second else None,
                old_blob=old,
                new_blob=new,
                similarity=int(letter[1:]) / 100 if second and letter[1:] else None,
                is_text=_is_regular_or_absent(old_mode) and _is_regular_or_absent(new_mode),
            ),
        )


def _is_regular_or_absent(mode: str) -> bool:
    """Returns whether a side is a regular file or absent."""
    return int(mode, 8) & _FILE_TYPE_MASK in {0, _REGULAR_FILE}


def _split_sections(patch: bytes) -> Iterator[list[bytes]]:
    """Splits a diff by file.

    Lines of content begin with a sign, so none is mistaken for a header.
    """
    section: list[bytes] = []
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git ") and section:
            yield section
            section = []
        section.append(line)
    if section:
        yield section


def _parse_hunks(lines: list[bytes]) -> Iterator[RawHunk]:
    hunk: RawHunk | None = None
    for line in lines:
        match = _HUNK_HEADER.match(line) if line.startswith(b"@@") else None
        if match:
            if hunk:
                yield hunk
            old_start, old_lines, new_start, new_lines = (
                int(number) if number is not None else 1 for number in match.groups()[:4]
            )
            hunk = RawHunk(
                (old_start, old_lines, new_start, new_lines),
                match[5].decode(errors="replace").strip(),
            )
        elif hunk and line.startswith(b"-"):
            hunk.removed.append(line[1:].decode(errors="replace"))
        elif hunk and line.startswith(b"+"):
            hunk.added.append(line[1:].decode(errors="replace"))
    if hunk:
        yield hunk

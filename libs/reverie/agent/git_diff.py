"""What `git diff-tree --raw -p -z --unified=0` prints, read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Status = Literal["added", "modified", "deleted", "renamed", "copied", "mode"]

_STATUS: Final[dict[str, Status]] = {
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "modified",
}
_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_TYPE: Final = 0o170000
_REGULAR: Final = 0o100000


@dataclass
class RawHunk:
    """A hunk with its lines, without their line ends."""

    place: tuple[int, int, int, int]
    header: str
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass
class Entry:
    """A file that differs. `plain`: a file of lines on both sides."""

    status: Status
    path: str
    old_path: str | None
    old_blob: str
    new_blob: str
    similarity: float | None
    plain: bool
    hunks: list[RawHunk] = field(default_factory=list)


def read_diff(printed: bytes) -> list[Entry]:
    """The files of a comparison in git's order."""
    names, _, patch = printed.partition(b"\0\0")
    sections = _sections(patch)
    entries = []
    for letter, entry in _entries(names.split(b"\0")):
        told = next(sections, [])
        if letter == "T":
            next(sections, None)
            entry.plain = False
        if any(line.startswith(b"Binary files ") for line in told):
            entry.plain = False
        if entry.plain:
            entry.hunks = list(_hunks(told))
        entries.append(entry)
    return entries


def _entries(parts: list[bytes]) -> Iterator[tuple[str, Entry]]:
    """The raw lines: modes, blobs and a letter; then one path, or two."""
    rest = iter(part for part in parts if part)
    for head in rest:
        old_mode, new_mode, old, new, letter = head.decode().removeprefix(":").split()
        first = _path(next(rest))
        second = _path(next(rest)) if letter[0] in "RC" else None
        status = _STATUS.get(letter[0], "modified")
        if letter[0] == "M" and old == new:
            status = "mode"
        yield (
            letter[0],
            Entry(
                status=status,
                path=second or first,
                old_path=first if second else None,
                old_blob=old,
                new_blob=new,
                similarity=int(letter[1:]) / 100 if second and letter[1:] else None,
                plain=_is_plain(old_mode) and _is_plain(new_mode),
            ),
        )


def _path(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _is_plain(mode: str) -> bool:
    """Whether a side is a file of its own, or not there at all."""
    return int(mode, 8) & _TYPE in {0, _REGULAR}


def _sections(patch: bytes) -> Iterator[list[bytes]]:
    """The lines of each file. Lines of content begin with a sign, so none is taken for a head."""
    held: list[bytes] = []
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git ") and held:
            yield held
            held = []
        held.append(line)
    if held:
        yield held


def _hunks(lines: list[bytes]) -> Iterator[RawHunk]:
    hunk: RawHunk | None = None
    for line in lines:
        head = _HUNK.match(line) if line.startswith(b"@@") else None
        if head:
            if hunk:
                yield hunk
            old, olds, new, news = (int(n) if n is not None else 1 for n in head.groups()[:4])
            hunk = RawHunk((old, olds, new, news), head[5].decode(errors="replace").strip())
        elif hunk and line.startswith(b"-"):
            hunk.removed.append(line[1:].decode(errors="replace"))
        elif hunk and line.startswith(b"+"):
            hunk.added.append(line[1:].decode(errors="replace"))
    if hunk:
        yield hunk

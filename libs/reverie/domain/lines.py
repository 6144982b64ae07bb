"""Line ranges of a file, and where they lie after an edit. Pure.

A hunk is (old start, old count, new start, new count), as git counts: lines from 1, and where a
count is 0 the start is the line before, 0 at the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

Hunk = tuple[int, int, int, int]


@dataclass(frozen=True)
class Part:
    """What a memory speaks of in a file: lines from `first` to `last`, both counted in, and the
    symbol that they define, where one is known. Without lines (`first` 0) the name alone."""

    first: int
    last: int
    name: str | None = None

    @property
    def placed(self) -> bool:
        """Whether its lines are known."""
        return self.first > 0


def hits(hunk: Hunk, part: Part) -> bool:
    """Whether the old side of a hunk lies in the lines.

    A pure insertion hits where it parts two of the lines.
    """
    start, count = hunk[:2]
    if count == 0:
        return part.first <= start < part.last
    return start <= part.last and part.first < start + count


def removes(hunk: Hunk, part: Part) -> bool:
    """Whether a hunk takes all of the lines away and puts none in their place."""
    start, count, _, new = hunk
    return new == 0 and start <= part.first and part.last < start + count


def carried(part: Part, hunks: Iterable[Hunk]) -> Part:
    """The same lines after the edit: shifted by what came before them, and where a hunk meets
    them, what stands in its place now. Lines that were removed leave the one before them."""
    if not part.placed:
        return part
    ordered = sorted(hunks)
    first = _carried(part.first, ordered, end=False)
    last = _carried(part.last, ordered, end=True)
    return replace(part, first=max(first, 1), last=max(first, last, 1))


def _carried(line: int, hunks: Sequence[Hunk], *, end: bool) -> int:
    shift = 0
    for start, count, new_start, new_count in hunks:
        if count == 0:
            shift += new_count if start < line else 0
        elif start + count <= line:
            shift += new_count - count
        elif start <= line:
            # The start of a new side without lines is the line before it.
            inside = new_start + max(new_count - 1, 0)
            return inside if end else new_start + (new_count == 0)
        else:
            break
    return line + shift

"""Line ranges of a file, and how a diff hunk shifts, touches or deletes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

DiffHunk = tuple[int, int, int, int]


@dataclass(frozen=True)
class LineRange:
    """A part of a file: lines `first` to `last`, both included, and the symbol they define, if
    known.

    Without lines (`first` 0), only the name is known.
    """

    first: int
    last: int
    name: str | None = None

    @property
    def has_lines(self) -> bool:
        """Whether its lines are known."""
        return self.first > 0


def hunk_touches(hunk: DiffHunk, line_range: LineRange) -> bool:
    """Returns whether the old side of a hunk touches the lines.

    A pure insertion touches them if it is between two of the lines.
    """
    start, count = hunk[:2]
    if count == 0:
        return line_range.first <= start < line_range.last
    return start <= line_range.last and line_range.first < start + count


def hunk_deletes(hunk: DiffHunk, line_range: LineRange) -> bool:
    """Returns whether a hunk deletes all of the lines without a replacement."""
    start, count, _, new = hunk
    return new == 0 and start <= line_range.first and line_range.last < start + count


def shift_range(line_range: LineRange, hunks: Iterable[DiffHunk]) -> LineRange:
    """Shifts the lines by an edit.

    Edits above move them; in an overlapping hunk, the replacement is used. Deleted lines leave the
    line before them.
    """
    if not line_range.has_lines:
        return line_range
    ordered = sorted(hunks)
    first = _shift_line(line_range.first, ordered, end=False)
    last = _shift_line(line_range.last, ordered, end=True)
    return replace(line_range, first=max(first, 1), last=max(first, last, 1))


def _shift_line(line: int, hunks: Sequence[DiffHunk], *, end: bool) -> int:
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

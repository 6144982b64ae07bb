"""Detects runs of lines that a change moved from one file to another.

A run needs three significant lines, of which at least 70 % occur in the same order in one hunk of
another file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from reverie.agent.git.diff import DiffEntry, RawHunk

MIN_SIMILARITY: Final = 0.7
MIN_LINES: Final = 3
MAX_LINES: Final = 20_000
MAX_HUNK_LINES: Final = 1000
_MIN_LINE_CHARS: Final = 4
_MAX_OCCURRENCES: Final = 20
_MAX_GAP: Final = 3


@dataclass(frozen=True)
class MovedLineRun:
    """A run of `lines` moved from `old_start` in `old_path` to `new_start` in `path`."""

    old_path: str
    old_start: int
    lines: int
    path: str
    new_start: int
    similarity: float


FileHunk = tuple[str, RawHunk]


def find_moved_lines(entries: Sequence[DiffEntry]) -> list[MovedLineRun]:
    """Finds the runs of lines that moved between files in one comparison.

    Returns none if the comparison is too large.
    """
    removals = [
        (entry.old_path or entry.path, hunk)
        for entry in entries
        for hunk in entry.hunks
        if hunk.removed
    ]
    additions = [(entry.path, hunk) for entry in entries for hunk in entry.hunks if hunk.added]
    if (
        sum(len(hunk.removed) + len(hunk.added) for entry in entries for hunk in entry.hunks)
        > MAX_LINES
    ):
        return []
    index = _index_lines(additions)
    return [run for removal in removals for run in _find_runs(removal, additions, index)]


def _index_lines(additions: Sequence[FileHunk]) -> Mapping[str, list[int]]:
    """Maps each added line to its hunks; lines that occur too often are left out."""
    index: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, hunk) in enumerate(additions):
        for line in {line.strip() for line in hunk.added[:MAX_HUNK_LINES]}:
            if len(line) >= _MIN_LINE_CHARS:
                index[line].append(number)
    return {line: numbers for line, numbers in index.items() if len(numbers) <= _MAX_OCCURRENCES}


def _find_runs(
    removal: FileHunk, additions: Sequence[FileHunk], index: Mapping[str, list[int]]
) -> Iterator[MovedLineRun]:
    path, hunk = removal
    votes = Counter(
        number
        for line in hunk.removed[:MAX_HUNK_LINES]
        for number in index.get(line.strip(), ())
        if additions[number][0] != path
    )
    taken: set[int] = set()
    for number, shared in votes.most_common(3):
        if shared < MIN_LINES:
            return
        for run in _align_hunks(removal, additions[number]):
            lines = set(range(run.old_start, run.old_start + run.lines))
            if not lines & taken:
                taken |= lines
                yield run


def _align_hunks(removal: FileHunk, addition: FileHunk) -> Iterator[MovedLineRun]:
    """The runs of one hunk in another: blocks of equal lines, with small gaps between them."""
    (old_path, old), (path, new) = removal, addition
    before = [line.strip() for line in old.removed[:MAX_HUNK_LINES]]
    after = [line.strip() for line in new.added[:MAX_HUNK_LINES]]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()[:-1]
    group: list[tuple[int, int, int]] = []
    for block in [*blocks, None]:
        if group and (block is None or block.a - (group[-1][0] + group[-1][2]) > _MAX_GAP):
            first, last = group[0], group[-1]
            length = last[0] + last[2] - first[0]
            equal = [before[a + offset] for a, _, size in group for offset in range(size)]
            significant = [line for line in equal if len(line) >= _MIN_LINE_CHARS]
            similarity = len(equal) / length
            if len(significant) >= MIN_LINES and similarity >= MIN_SIMILARITY:
                start = old.line_ranges[0] + first[0]
                yield MovedLineRun(
                    old_path, start, length, path, new.line_ranges[2] + first[1], similarity
                )
            group = []
        if block is not None:
            group.append((block.a, block.b, block.size))

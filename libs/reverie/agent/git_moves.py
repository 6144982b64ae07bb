"""Lines that left one file and stand in another now, found by what they say.

A run counts from three telling lines on, where at least 70 % of it stands in one hunk of another
file in the same order (difflib's matching blocks, blanks at the ends of lines aside).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from reverie.agent.git_diff import Entry, RawHunk

SIMILAR: Final = 0.7
LEAST: Final = 3
MOST_LINES: Final = 20_000
MOST_IN_HUNK: Final = 1000
_SHORTEST: Final = 4
_OFTEN: Final = 20
_GAP: Final = 3


@dataclass(frozen=True)
class Moved:
    """`lines` from `old_start` in `old_path` on stand in `path` from `new_start` on."""

    old_path: str
    old_start: int
    lines: int
    path: str
    new_start: int
    similarity: float


Place = tuple[str, RawHunk]


def moved_lines(entries: Sequence[Entry]) -> list[Moved]:
    """The runs of lines that one comparison moved between files; none of one too large to tell."""
    gone = [
        (one.old_path or one.path, hunk) for one in entries for hunk in one.hunks if hunk.removed
    ]
    come = [(one.path, hunk) for one in entries for hunk in one.hunks if hunk.added]
    if (
        sum(len(hunk.removed) + len(hunk.added) for one in entries for hunk in one.hunks)
        > MOST_LINES
    ):
        return []
    index = _index(come)
    return [run for place in gone for run in _runs(place, come, index)]


def _index(come: Sequence[Place]) -> Mapping[str, list[int]]:
    """By a telling line, the hunks that add it; what is everywhere tells nothing."""
    index: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, hunk) in enumerate(come):
        for line in {line.strip() for line in hunk.added[:MOST_IN_HUNK]}:
            if len(line) >= _SHORTEST:
                index[line].append(number)
    return {line: numbers for line, numbers in index.items() if len(numbers) <= _OFTEN}


def _runs(gone: Place, come: Sequence[Place], index: Mapping[str, list[int]]) -> Iterator[Moved]:
    path, hunk = gone
    votes = Counter(
        number
        for line in hunk.removed[:MOST_IN_HUNK]
        for number in index.get(line.strip(), ())
        if come[number][0] != path
    )
    taken: set[int] = set()
    for number, shared in votes.most_common(3):
        if shared < LEAST:
            return
        for run in _aligned(gone, come[number]):
            lines = set(range(run.old_start, run.old_start + run.lines))
            if not lines & taken:
                taken |= lines
                yield run


def _aligned(gone: Place, come: Place) -> Iterator[Moved]:
    """The runs of one hunk in another: blocks of equal lines, with small gaps between them."""
    (old_path, old), (path, new) = gone, come
    before = [line.strip() for line in old.removed[:MOST_IN_HUNK]]
    after = [line.strip() for line in new.added[:MOST_IN_HUNK]]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()[:-1]
    held: list[tuple[int, int, int]] = []
    for block in [*blocks, None]:
        if held and (block is None or block.a - (held[-1][0] + held[-1][2]) > _GAP):
            first, last = held[0], held[-1]
            length = last[0] + last[2] - first[0]
            equal = [before[a + n] for a, _, size in held for n in range(size)]
            telling = [line for line in equal if len(line) >= _SHORTEST]
            likeness = len(equal) / length
            if len(telling) >= LEAST and likeness >= SIMILAR:
                start = old.place[0] + first[0]
                yield Moved(old_path, start, length, path, new.place[2] + first[1], likeness)
            held = []
        if block is not None:
            held.append((block.a, block.b, block.size))

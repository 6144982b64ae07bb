"""Which memories a change of files makes doubtful, how much, and on what evidence.

The rules, for a memory anchored to a file that it was learned from:

| what happened to the file                             | grade   | score |
|-------------------------------------------------------|---------|-------|
| deleted                                               | gone    | 1.0   |
| modified in the lines the memory speaks of            | stale   | 0.8   |
| modified, and the memory names no lines (or the       |         |       |
| change names no hunks)                                | suspect | 0.5   |
| modified elsewhere                                    | suspect | 0.2   |
| renamed: the anchor moves; edited too, as modified    |         |       |
| added, copied, mode                                   | none    |       |

A memory learned at or after a commit knows it, and is never marked by it.

Lines are compared as they stood before the change: after an earlier change they may have
shifted, so a score says how far to doubt, not that a memory is wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

Match = Callable[[str, str], bool]
Hunk = tuple[int, int, int, int]
Lines = tuple[tuple[int, int], ...]


class Grade(StrEnum):
    """How far to doubt a memory, from the mildest."""

    SUSPECT = "suspect"
    STALE = "stale"
    GONE = "gone"


_RANK = {grade: rank for rank, grade in enumerate(Grade)}

GONE = (Grade.GONE, 1.0)
TOUCHED = (Grade.STALE, 0.8)
LINES_UNKNOWN = (Grade.SUSPECT, 0.5)
ELSEWHERE = (Grade.SUSPECT, 0.2)


@dataclass(frozen=True)
class Commit:
    """A commit of a change."""

    sha: str
    subject: str
    committed_at: datetime


@dataclass(frozen=True)
class ChangedFile:
    """A changed file. A hunk is (old start, old lines, new start, new lines), as git counts."""

    path: str
    status: str
    old_path: str | None = None
    hunks: tuple[Hunk, ...] = ()
    commit: str | None = None

    @property
    def known_as(self) -> str:
        """The path before the change, which is the one that a memory knows."""
        return self.old_path if self.status == "renamed" and self.old_path else self.path


@dataclass(frozen=True)
class Change:
    """What a push changed: at least one commit, oldest first, and the files."""

    commits: tuple[Commit, ...]
    files: tuple[ChangedFile, ...]

    def commit_of(self, file: ChangedFile) -> Commit:
        """The commit to blame: the one that the file names (an abbreviation will do), else the
        last of the change."""
        last = self.commits[-1]
        if file.commit is None:
            return last
        named = (c for c in self.commits if _same_commit(c.sha, file.commit or ""))
        return next(named, Commit(file.commit, "", last.committed_at))


@dataclass(frozen=True)
class Anchored:
    """A memory and a file that it speaks of; `lines` are (first, last), both counted in."""

    memory: UUID
    path: str
    known_at: datetime
    lines: Lines | None = None


@dataclass(frozen=True)
class Mark:
    """Why one memory may be stale. `change` is the file's status; `path` its path now."""

    memory: UUID
    path: str
    grade: Grade
    score: float
    commit: str
    subject: str
    committed_at: datetime
    change: str


@dataclass(frozen=True)
class Move:
    """A memory's anchor that follows a renamed file: from `old`, as the anchor had it."""

    memory: UUID
    old: str
    new: str
    commit: str


@dataclass(frozen=True)
class Assessment:
    """What a change means for the memories: doubts and moves, in a fixed order."""

    marks: tuple[Mark, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """All the doubts about one memory together."""

    grade: Grade
    score: float


def assess(change: Change, anchored: Iterable[Anchored], match: Match) -> Assessment:
    """What the change means for these memories.

    `match(anchor, changed)` says whether two paths mean one file; it is asked only about
    paths that end in the same file name, whatever the case, so that a large change costs
    time by what it touches.
    """
    by_name = _by_name(anchored)
    marks: list[Mark] = []
    moves: list[Move] = []
    for file in change.files:
        commit = change.commit_of(file)
        for anchor in _touched(file, commit, by_name, match):
            marks.extend(_marks(file, commit, anchor))
            moves.extend(_moves(file, commit, anchor))
    return Assessment(_strongest(marks), tuple(sorted(set(moves), key=_move_order)))


def combine(marks: Iterable[Mark]) -> dict[UUID, Verdict]:
    """One verdict a memory: the worst grade, and the doubts joined by noisy-or.

    Noisy-or, 1 - product of (1 - score), treats the marks as independent reasons: each adds
    to the doubt, none takes from it, and the sum stays within 1.
    """
    of_memory: defaultdict[UUID, list[Mark]] = defaultdict(list)
    for mark in marks:
        of_memory[mark.memory].append(mark)
    return {
        memory: verdict((mark.grade, mark.score) for mark in of_one)
        for memory, of_one in of_memory.items()
    }


def verdict(doubts: Iterable[tuple[Grade, float]]) -> Verdict:
    """At least one doubt as one: the worst grade, the scores joined by noisy-or."""
    grades, scores = zip(*doubts, strict=True)
    trust = math.prod(1 - score for score in sorted(scores))
    return Verdict(worst(grades), min(1.0, 1 - trust))


def worst(grades: Iterable[Grade]) -> Grade:
    """The gravest of at least one grade."""
    return max(grades, key=_RANK.__getitem__)


def grade_file(file: ChangedFile, lines: Lines | None) -> tuple[Grade, float] | None:
    """The rule of the table above for one file and the lines a memory speaks of, if any."""
    match file.status:
        case "deleted":
            return GONE
        case "modified":
            return _grade_edit(file.hunks, lines)
        case "renamed" if file.hunks:
            return _grade_edit(file.hunks, lines)
        case _:
            return None


def _grade_edit(hunks: tuple[Hunk, ...], lines: Lines | None) -> tuple[Grade, float]:
    if not lines or not hunks:
        return LINES_UNKNOWN
    return TOUCHED if any(_hits(hunk, span) for hunk in hunks for span in lines) else ELSEWHERE


def _hits(hunk: Hunk, span: tuple[int, int]) -> bool:
    """Whether the old side of a hunk lies in the lines.

    Git writes a pure insertion as zero lines after line `start`: it hits where it parts two
    of the lines.
    """
    start, count = hunk[:2]
    first, last = span
    if count == 0:
        return first <= start < last
    return start <= last and first < start + count


def _touched(
    file: ChangedFile, commit: Commit, by_name: Mapping[str, list[Anchored]], match: Match
) -> Iterator[Anchored]:
    """The memories that know the file and do not know the commit."""
    for anchor in by_name.get(_name(file.known_as), ()):
        if anchor.known_at < commit.committed_at and match(anchor.path, file.known_as):
            yield anchor


def _marks(file: ChangedFile, commit: Commit, anchor: Anchored) -> Iterator[Mark]:
    graded = grade_file(file, anchor.lines)
    if graded:
        grade, score = graded
        yield Mark(
            memory=anchor.memory,
            path=file.path,
            grade=grade,
            score=score,
            commit=commit.sha,
            subject=commit.subject,
            committed_at=commit.committed_at,
            change=file.status,
        )


def _moves(file: ChangedFile, commit: Commit, anchor: Anchored) -> Iterator[Move]:
    if file.status == "renamed" and file.old_path:
        yield Move(anchor.memory, anchor.path, file.path, commit.sha)


def _strongest(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """One mark for each memory, file and commit: a memory with two anchors in one file has
    one reason for doubt, not two."""
    kept: dict[tuple[UUID, str, str], Mark] = {}
    for mark in marks:
        place = (mark.memory, mark.path, mark.commit)
        if place not in kept or kept[place].score < mark.score:
            kept[place] = mark
    return tuple(sorted(kept.values(), key=_mark_order))


def _mark_order(mark: Mark) -> tuple[UUID, datetime, str, str]:
    return mark.memory, mark.committed_at, mark.path, mark.commit


def _move_order(move: Move) -> tuple[UUID, str, str, str]:
    return move.memory, move.old, move.new, move.commit


def _by_name(anchored: Iterable[Anchored]) -> dict[str, list[Anchored]]:
    by_name: defaultdict[str, list[Anchored]] = defaultdict(list)
    for anchor in anchored:
        by_name[_name(anchor.path)].append(anchor)
    return by_name


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def _same_commit(sha: str, named: str) -> bool:
    return sha.startswith(named) or named.startswith(sha)

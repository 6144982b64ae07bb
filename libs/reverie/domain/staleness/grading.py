"""Grading of file changes: how stale each change makes a memory that is anchored to the file.

The rules, for a memory that is anchored to a file, to lines in it or to symbols:

| change to the file                                        | grade   | score |
|-----------------------------------------------------------|---------|-------|
| deletes it, or the symbol, or all of the lines            | gone    | 1.0   |
| edits the lines or the symbol                             | stale   | 0.8   |
| edits a line with an identifier that the memory names     | suspect | 0.5   |
| edits it; where, or what the memory is about, is unknown  | suspect | 0.5   |
| edits it elsewhere                                        | suspect | 0.2   |
| moves the lines to another file, a share of them changed  | suspect | share |
| commits what the memory's own session had written         | suspect | 0.2   |
| renames or copies it, adds it, changes its mode           | none    |       |

An edit of comments only counts 0.3 of that, one of white space only 0.1; both give at most
`suspect`. A rename moves the anchor, and moved lines move their anchors. A revert, or content
equal to the earlier content, removes the mark. Of several suspect marks for one file the strongest
counts. A memory learned at or after a commit already reflects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from reverie.domain.staleness.line_ranges import (
    DiffHunk,
    LineRange,
    hunk_deletes,
    hunk_touches,
    shift_range,
)

_MERGE_SUBJECTS: Final = (
    re.compile(r"^Merge (?:remote-tracking )?branch '([^']+)'"),
    re.compile(r"^Merge pull request #\d+ from [^/\s]+/(\S+)"),
    re.compile(r"^Merge branch (\S+) into "),
)
_REVERT_LINE: Final = re.compile(r"^This reverts commit ([0-9a-f]{7,64})", re.MULTILINE)


def parse_merged_branch(subject: str) -> str | None:
    """The branch that a merge brought in, as git, GitHub and GitLab word it."""
    match = next((m for m in (pattern.match(subject) for pattern in _MERGE_SUBJECTS) if m), None)
    return match[1].removeprefix("origin/") if match else None


def parse_reverted_commit(message: str) -> str | None:
    """Parses the commit that a message reverts, in the words of `git revert`."""
    match = _REVERT_LINE.search(message)
    return match[1] if match else None


class StaleGrade(StrEnum):
    """Degrees of doubt about a memory, from the mildest."""

    SUSPECT = "suspect"
    STALE = "stale"
    GONE = "gone"


_RANK = {grade: rank for rank, grade in enumerate(StaleGrade)}
GradedScore = tuple[StaleGrade, float]

GONE: GradedScore = (StaleGrade.GONE, 1.0)
LINES_TOUCHED: GradedScore = (StaleGrade.STALE, 0.8)
IDENTIFIER_TOUCHED: GradedScore = (StaleGrade.SUSPECT, 0.5)
LINES_UNKNOWN: GradedScore = (StaleGrade.SUSPECT, 0.5)
ELSEWHERE: GradedScore = (StaleGrade.SUSPECT, 0.2)
COSMETIC_FACTORS: Mapping[str, float] = {"comment": 0.3, "space": 0.1}
MIN_STALENESS = 0.05
"""Below this a doubt is not worth telling."""
SESSION_COMMIT_WINDOW = timedelta(days=1)
"""The first commit of a file within so long after a session wrote it has what the session wrote."""
MIN_MOVE_SIMILARITY = 0.6
"""Least share of unchanged lines for an anchor to follow a move."""


@dataclass(frozen=True)
class ChangeCommit:
    """A commit of a change; `reverted_sha` is the commit that it reverts, if named."""

    sha: str
    subject: str
    committed_at: datetime
    reverted_sha: str | None = None

    @property
    def is_revert(self) -> bool:
        """Whether the message names a commit that it reverts. A subject alone proves nothing."""
        return bool(self.reverted_sha)

    def reverts_commit(self, other: ChangeCommit) -> bool:
        """Returns whether it reverts the other. Either name may be abbreviated."""
        if not self.reverted_sha:
            return False
        short, long = sorted((other.sha, self.reverted_sha), key=len)
        return long.startswith(short)


@dataclass(frozen=True)
class FileEdit:
    """A hunk, its kind (code, comment, space; None: unknown), its definitions, and other
    identifiers.

    Definitions are those that enclose the hunk or that it contains.
    """

    hunk: DiffHunk
    kind: str | None = None
    symbols: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LineMove:
    """Lines from `first` to `last` that went to another file, and how much of them is as it was."""

    first: int
    last: int
    path: str
    new_first: int
    similarity: float = 1.0


@dataclass(frozen=True)
class ChangedFile:
    """A changed file. `removed_symbols`: definitions that went; `is_truncated`: edits are missing;
    `may_exist_elsewhere`: the file was deleted here and may live on elsewhere."""

    path: str
    status: str
    old_path: str | None = None
    edits: tuple[FileEdit, ...] = ()
    moved: tuple[LineMove, ...] = ()
    removed_symbols: frozenset[str] = frozenset()
    is_truncated: bool = False
    may_exist_elsewhere: bool = False
    old_blob: str | None = None
    new_blob: str | None = None

    @property
    def previous_path(self) -> str:
        """The path before the change, which is the one that a memory knows."""
        return self.old_path if self.status == "renamed" and self.old_path else self.path


@dataclass(frozen=True)
class FileChangeStep:
    """A change of one file: its commit, and the time from which it was on its branch.

    Git tells whole seconds. `latest`: when it was on its branch at the latest (None: `at`).
    """

    file: ChangedFile
    commit: ChangeCommit
    at: datetime
    change_id: UUID | None = None
    """The stored change that told of it."""
    latest: datetime | None = None


@dataclass(frozen=True)
class FileAnchor:
    """A memory and a file that it mentions, in the state of `known_at`.

    `ranges` are the lines and symbols, `identifiers` those that the memory names, `blob` git's name
    of the content, each if known. `confirmed_at`: when the memory was last confirmed; earlier
    changes move the anchor and cast no doubt. `written_at`: when the memory's session had last
    written the file by then. `known_by_clock`: `known_at` is no time of git.
    """

    memory: UUID
    path: str
    known_at: datetime
    ranges: tuple[LineRange, ...] = ()
    identifiers: frozenset[str] = frozenset()
    blob: str | None = None
    confirmed_at: datetime | None = None
    written_at: datetime | None = None
    known_by_clock: bool = False


@dataclass(frozen=True)
class StaleMark:
    """The reason why one memory may be stale.

    `change` is the file's status; `path` its path then; `lines` the position of the memory's lines
    after it; `change_id` the stored change that told of it.
    """

    memory: UUID
    path: str
    grade: StaleGrade
    score: float
    commit: str
    subject: str
    committed_at: datetime
    change: str
    lines: tuple[tuple[int, int], ...] = ()
    change_id: UUID | None = None


def grade_file(
    file: ChangedFile, ranges: tuple[LineRange, ...] = (), identifiers: frozenset[str] = frozenset()
) -> GradedScore | None:
    """Grades an edit of a file that still exists, by the table above and the memory's ranges."""
    if file.status not in {"modified", "renamed"}:
        return None
    if not file.edits:
        return None if file.status == "renamed" and not file.is_truncated else LINES_UNKNOWN
    graded_scores: list[GradedScore] = []
    remaining: list[LineRange] = []
    for line_range in ranges:
        move = find_move_target(file, line_range)
        if move is None:
            remaining.append(line_range)
        else:
            graded_scores.append((StaleGrade.SUSPECT, 1 - move.similarity))
    if remaining or not ranges:
        graded_scores += [_grade_edit(edit, file, remaining, identifiers) for edit in file.edits]
    if file.is_truncated:
        graded_scores.append(LINES_UNKNOWN)
    return max(graded_scores, key=lambda graded: (_RANK[graded[0]], graded[1]))


def _grade_edit(
    edit: FileEdit, file: ChangedFile, ranges: list[LineRange], identifiers: frozenset[str]
) -> GradedScore:
    graded = (
        _grade_ranges(edit, file, ranges) if ranges else _grade_identifiers(edit, file, identifiers)
    )
    factor = COSMETIC_FACTORS.get(edit.kind or "")
    return graded if factor is None else (StaleGrade.SUSPECT, graded[1] * factor)


def _grade_ranges(edit: FileEdit, file: ChangedFile, ranges: Iterable[LineRange]) -> GradedScore:
    result = ELSEWHERE
    for line_range in ranges:
        if line_range.name in file.removed_symbols or (
            line_range.has_lines and hunk_deletes(edit.hunk, line_range)
        ):
            return GONE
        # A definition can have namesakes: lines decide if they are known.
        is_touched = (
            hunk_touches(edit.hunk, line_range)
            if line_range.has_lines
            else line_range.name in edit.symbols
        )
        result = LINES_TOUCHED if is_touched else result
    return result


def _grade_identifiers(
    edit: FileEdit, file: ChangedFile, identifiers: frozenset[str]
) -> GradedScore:
    """Grades for a memory about the file that refers to no lines in it."""
    if not identifiers or not (edit.symbols or edit.identifiers):
        return LINES_UNKNOWN
    if identifiers & file.removed_symbols:
        return GONE
    if identifiers & edit.symbols:
        return LINES_TOUCHED
    return IDENTIFIER_TOUCHED if identifiers & edit.identifiers else ELSEWHERE


def shift_ranges(file: ChangedFile, ranges: tuple[LineRange, ...]) -> tuple[LineRange, ...]:
    """Shifts the ranges after an edit of their file; drops the lines if not all edits are known."""
    if file.status == "renamed" and not file.edits and not file.is_truncated:
        return ranges
    if not file.edits or file.is_truncated:
        return tuple(
            replace(line_range, first=0, last=0) for line_range in ranges if line_range.name
        )
    hunks = [edit.hunk for edit in file.edits]
    return tuple(shift_range(line_range, hunks) for line_range in ranges)


def find_move_target(file: ChangedFile, line_range: LineRange) -> LineMove | None:
    """Finds the new place of a part that moved to one other file and is mostly unchanged."""
    if not line_range.has_lines:
        return None
    candidates = (
        move
        for move in file.moved
        if move.first <= line_range.first
        and line_range.last <= move.last
        and move.similarity >= MIN_MOVE_SIMILARITY
    )
    return max(candidates, key=lambda move: move.similarity, default=None)

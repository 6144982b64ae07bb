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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from reverie.domain.staleness.file_changes import ChangedFile, FileEdit, find_move_target
from reverie.domain.staleness.line_ranges import LineRange, hunk_deletes, hunk_touches


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
"""A lower score leaves no mark."""
SESSION_COMMIT_WINDOW = timedelta(days=1)
"""The first commit of a file within this time after a session wrote it is the session's own."""


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

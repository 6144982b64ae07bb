"""How stale a later change makes the memory of a commit: less than a memory of the code itself.

The code changes on, and what the commit decided need not. `apply_change` weighs marks by it.

| later change                               | mark                                | score, in all |
|--------------------------------------------|-------------------------------------|---------------|
| edits elsewhere, comments, moves           | none                                |               |
| edits its lines, or symbols that it names  | suspect, contradicted by the commit | 0.1           |
| edits its files, the lines are not known   | suspect                             | 0.05          |
| deletes all of its files                   | suspect                             | 0.5           |

A mark stands at each file: its share is such that the marks of all files together have the score.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reverie.domain.staleness.grading import LINES_UNKNOWN, StaleGrade, StaleMark

COMMIT_KEY_PREFIX = "commit:"
"""The key of a commit's memory is this and the id of the commit."""
COMMIT_SOURCE = "commit"
"""The source of a commit's memory."""
CONTRADICTED = "contradicted"
CONTRADICTED_SCORE = 0.1
CHANGED_SCORE = 0.05
DELETED_SCORE = 0.5


def weigh_commit_marks(marks: Iterable[StaleMark], file_count: int) -> tuple[StaleMark, ...]:
    """Weighs the doubts about the memory of a commit at one of its `file_count` files.

    Of several the gravest counts, and of those the latest.
    """
    weighed = [mark for mark in (_weigh_mark(mark) for mark in marks) if mark is not None]
    if not weighed:
        return ()
    gravest = max(weighed, key=lambda mark: (mark.score, mark.committed_at))
    # Noisy-or of equal marks: 1 - (1 - share)^n is the score.
    share = 1 - (1 - gravest.score) ** (1 / max(file_count, 1))
    return (replace(gravest, score=share),)


def _weigh_mark(mark: StaleMark) -> StaleMark | None:
    if mark.change == "deleted":
        return replace(mark, grade=StaleGrade.SUSPECT, score=DELETED_SCORE)
    if mark.grade is not StaleGrade.SUSPECT:
        return replace(
            mark, grade=StaleGrade.SUSPECT, score=CONTRADICTED_SCORE, change=CONTRADICTED
        )
    return replace(mark, score=CHANGED_SCORE) if mark.score >= LINES_UNKNOWN[1] else None

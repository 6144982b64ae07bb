"""Tracking of a file anchor through the changes of its file: edits, moves, deletions, reverts.

The rules are those of `grading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from reverie.domain.staleness.file_changes import (
    ChangeCommit,
    ChangedFile,
    FileAnchor,
    FileChangeStep,
    find_move_target,
    shift_ranges,
)
from reverie.domain.staleness.grading import (
    ELSEWHERE,
    GONE,
    LINES_UNKNOWN,
    MIN_STALENESS,
    SESSION_COMMIT_WINDOW,
    GradedScore,
    StaleGrade,
    StaleMark,
    grade_file,
)
from reverie.domain.staleness.line_ranges import LineRange

PathMatcher = Callable[[str, str], bool]


@dataclass(frozen=True)
class AnchorTrail:
    """What became of an anchor: marks (oldest first), present path and ranges, former paths.

    `moved_anchors`: anchors of the parts that moved to other files.
    """

    marks: tuple[StaleMark, ...]
    path: str
    ranges: tuple[LineRange, ...]
    previous_paths: tuple[str, ...] = ()
    moved_anchors: tuple[FileAnchor, ...] = ()


def track_anchor(
    anchor: FileAnchor, steps: Iterable[FileChangeStep], match: PathMatcher
) -> AnchorTrail:
    """Applies the steps, in their order, to an anchor.

    `match(anchor, changed)` returns whether two paths are one file; after a rename the path is
    known exactly.
    """
    tracker = _AnchorTracker(anchor, match)
    for step in steps:
        if tracker.is_affected_by(step.file):
            tracker.apply_step(step)
    return tracker.build_trail()


class _AnchorTracker:
    """An anchor on its way through the changes of its file."""

    def __init__(self, anchor: FileAnchor, match: PathMatcher) -> None:
        self._anchor = anchor
        self._match = match
        self._path = anchor.path
        self._ranges = anchor.ranges
        self._blob = anchor.blob
        self._previous_paths: list[str] = []
        self._moved_anchors: list[FileAnchor] = []
        self._applied_commits: dict[str, ChangeCommit] = {}
        self._marks: dict[str, StaleMark | None] = {}
        self._reverted_marks: dict[str, StaleMark | None] = {}
        self._is_deleted = False
        self._has_moved_away = False
        self._uncommitted_write = anchor.written_at
        self._session_commit: str | None = None

    def is_affected_by(self, file: ChangedFile) -> bool:
        if self._previous_paths:
            return self._path == file.previous_path
        return self._match(self._path, file.previous_path)

    def apply_step(self, step: FileChangeStep) -> None:
        if self._is_within(step, self._anchor.known_at):
            # The memory is of that state or a later one.
            self._note_session_commit(step.commit)
            return
        file = step.file
        self._blob = self._blob or file.old_blob
        is_revert = self._apply_revert(step)
        is_restored = file.new_blob is not None and file.new_blob == self._blob
        if self._is_deleted and not (is_revert or is_restored):
            return
        graded = None if is_revert else self._grade_change(file)
        self._note_session_commit(step.commit)
        is_own_commit = step.commit.sha == self._session_commit
        if is_own_commit and graded is not None and file.status != "deleted":
            graded = min(graded, ELSEWHERE, key=lambda option: option[1])
        previous_ranges = self._ranges
        self._update_anchor(step)
        if is_restored:
            self._marks = dict.fromkeys(self._marks)
            self._ranges = self._anchor.ranges
            self._is_deleted = False
        elif not is_revert:
            self._add_mark(step, graded, previous_ranges)

    def _is_within(self, step: FileChangeStep, moment: datetime) -> bool:
        """Returns whether the step was made by that moment, as the anchor counts time."""
        latest = step.latest if self._anchor.known_by_clock else None
        return (latest or step.at) <= moment

    def build_trail(self) -> AnchorTrail:
        marks = [mark for mark in self._marks.values() if mark]
        definite = [mark for mark in marks if mark.grade is not StaleGrade.SUSPECT]
        suspected = [mark for mark in marks if mark.grade is StaleGrade.SUSPECT]
        if suspected:
            definite.append(max(suspected, key=lambda mark: (mark.score, mark.committed_at)))
        definite.sort(key=lambda mark: mark.committed_at)
        return AnchorTrail(
            tuple(definite),
            self._path,
            self._ranges,
            tuple(self._previous_paths),
            tuple(self._moved_anchors),
        )

    def _apply_revert(self, step: FileChangeStep) -> bool:
        """Returns whether the step reverts an earlier one.

        If so, its doubt is removed; if it was a revert itself, the earlier doubt returns.
        """
        if not step.commit.is_revert:
            return False
        recent_commits = reversed(self._applied_commits.values())
        reverted_sha = next(
            (commit.sha for commit in recent_commits if step.commit.reverts_commit(commit)), None
        )
        if reverted_sha is None:
            return False
        self._applied_commits.pop(reverted_sha)
        self._applied_commits[step.commit.sha] = step.commit
        self._reverted_marks[step.commit.sha] = self._marks.pop(reverted_sha)
        restored_mark = self._reverted_marks.pop(reverted_sha, None)
        self._marks[step.commit.sha] = restored_mark
        return True

    def _note_session_commit(self, commit: ChangeCommit) -> None:
        """Notes the first commit after the memory's session wrote the file: it has what it wrote.

        A commit long after that is somebody else's.
        """
        written_at = self._uncommitted_write
        if written_at is None or commit.committed_at <= written_at:
            return
        self._uncommitted_write = None
        if commit.committed_at - written_at <= SESSION_COMMIT_WINDOW:
            self._session_commit = commit.sha

    def _grade_change(self, file: ChangedFile) -> GradedScore | None:
        if self._has_moved_away:
            return None
        if file.status == "deleted":
            return LINES_UNKNOWN if file.may_exist_elsewhere else GONE
        return grade_file(file, self._ranges, self._anchor.identifiers)

    def _update_anchor(self, step: FileChangeStep) -> None:
        file = step.file
        if file.status == "renamed" and file.old_path:
            self._previous_paths.append(self._path)
            self._path = file.path
        if file.status in {"modified", "renamed"}:
            self._move_ranges(step)
            self._ranges = shift_ranges(file, self._ranges)
        self._is_deleted = file.status == "deleted" and not file.may_exist_elsewhere

    def _move_ranges(self, step: FileChangeStep) -> None:
        """Gives the parts that moved to another file an anchor there."""
        remaining: list[LineRange] = []
        for line_range in self._ranges:
            target = find_move_target(step.file, line_range)
            if target is None:
                remaining.append(line_range)
                continue
            shift = target.new_first - target.first
            moved_range = replace(
                line_range, first=line_range.first + shift, last=line_range.last + shift
            )
            self._moved_anchors.append(
                FileAnchor(self._anchor.memory, target.path, step.at, (moved_range,))
            )
        self._has_moved_away = self._has_moved_away or (bool(self._ranges) and not remaining)
        self._ranges = tuple(remaining)

    def _add_mark(
        self,
        step: FileChangeStep,
        graded: GradedScore | None,
        previous_ranges: tuple[LineRange, ...],
    ) -> None:
        sha = step.commit.sha
        self._applied_commits[sha] = step.commit
        self._marks.setdefault(sha, None)
        confirmed_at = self._anchor.confirmed_at
        is_excused = confirmed_at is not None and self._is_within(step, confirmed_at)
        if graded is None or graded[1] < MIN_STALENESS or is_excused:
            return
        lines = tuple(
            (line_range.first, line_range.last)
            for line_range in self._ranges or previous_ranges
            if line_range.has_lines
        )
        mark = StaleMark(
            memory=self._anchor.memory,
            path=step.file.path,
            grade=graded[0],
            score=round(graded[1], 4),
            commit=sha,
            subject=step.commit.subject,
            committed_at=step.commit.committed_at,
            change=step.file.status,
            lines=lines,
            change_id=step.change_id,
        )
        existing = self._marks[sha]
        if existing is None or existing.score < mark.score:
            self._marks[sha] = mark

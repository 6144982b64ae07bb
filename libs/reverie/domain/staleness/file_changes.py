"""File changes, their commits, and the anchors of memories, as the staleness rules read them.

A change moves the lines of an anchor (`shift_ranges`), or takes them to another file
(`find_move_target`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from reverie.domain.staleness.line_ranges import DiffHunk, LineRange, shift_range

MIN_MOVE_SIMILARITY = 0.6
"""Least share of unchanged lines for an anchor to follow a move."""
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
    """A change of one file: its commit, and when it came to its branch.

    Git stores whole seconds. `at` and `latest` are the earliest and the latest moment at which it
    can have come (`latest` None: `at` is exact).
    """

    file: ChangedFile
    commit: ChangeCommit
    at: datetime
    change_id: UUID | None = None
    """The stored git change that it is part of."""
    latest: datetime | None = None


@dataclass(frozen=True)
class FileAnchor:
    """A memory and a file that it mentions, in the state of `known_at`.

    `ranges` are the lines and symbols, `identifiers` those that the memory names, `blob` git's name
    of the content, each if known. `confirmed_at`: when the memory was last confirmed; earlier
    changes move the anchor and leave no mark. `written_at`: when the memory's session last wrote
    the file. `known_by_clock`: `known_at` is finer than git's seconds, not the time of a commit.
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

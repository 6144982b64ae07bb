"""An anchor followed through all that happened to its file: doubts, moves, reverts. Pure.

The rules are those of `staleness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from reverie.domain.lines import Part
from reverie.domain.staleness import (
    ELSEWHERE,
    GONE,
    LEAST,
    LINES_UNKNOWN,
    WORK,
    Anchored,
    ChangedFile,
    Commit,
    Doubt,
    Grade,
    Mark,
    Step,
    after,
    grade_file,
    home,
)

Match = Callable[[str, str], bool]


@dataclass(frozen=True)
class Trail:
    """What became of an anchor: its doubts, oldest first, where it is now, the paths it left, and
    anchors of parts that went to other files."""

    marks: tuple[Mark, ...]
    path: str
    parts: tuple[Part, ...]
    left: tuple[str, ...] = ()
    offspring: tuple[Anchored, ...] = ()


def follow(anchor: Anchored, steps: Iterable[Step], match: Match) -> Trail:
    """What the steps, in their order, do to an anchor.

    `match(anchor, changed)` says whether two paths mean one file; after a rename the path is
    known exactly.
    """
    walk = _Walk(anchor, match)
    for step in steps:
        if not walk.meets(step.file):
            continue
        if step.at > anchor.known_at:
            walk.take(step)
        else:
            walk.knows(step)
    return walk.trail()


class _Walk:
    """An anchor on its way through the changes of its file."""

    def __init__(self, anchor: Anchored, match: Match) -> None:
        self._anchor = anchor
        self._match = match
        self._path = anchor.path
        self._parts = anchor.parts
        self._blob = anchor.blob
        self._left: list[str] = []
        self._offspring: list[Anchored] = []
        self._met: dict[str, Commit] = {}
        self._marks: dict[str, Mark | None] = {}
        self._taken: dict[str, Mark | None] = {}
        self._gone = False
        self._emptied = False
        self._unsent = anchor.wrote
        self._sent: str | None = None

    def meets(self, file: ChangedFile) -> bool:
        if self._left:
            return self._path == file.known_as
        return self._match(self._path, file.known_as)

    def knows(self, step: Step) -> None:
        """A step that the memory knew."""
        self._is_own(step)

    def take(self, step: Step) -> None:
        file = step.file
        self._blob = self._blob or file.old_blob
        back = self._takes_back(step)
        same = file.new_blob is not None and file.new_blob == self._blob
        if self._gone and not (back or same):
            return
        doubt = None if back else self._doubt(file)
        if self._is_own(step) and doubt is not None and file.status != "deleted":
            doubt = min(doubt, ELSEWHERE, key=lambda one: one[1])
        before = self._parts
        self._edit(step)
        if same:
            self._as_it_was()
        elif not back:
            self._mark(step, doubt, before)

    def trail(self) -> Trail:
        found = [mark for mark in self._marks.values() if mark]
        sure = [mark for mark in found if mark.grade is not Grade.SUSPECT]
        mild = [mark for mark in found if mark.grade is Grade.SUSPECT]
        if mild:
            sure.append(max(mild, key=lambda mark: (mark.score, mark.committed_at)))
        sure.sort(key=lambda mark: mark.committed_at)
        return Trail(
            tuple(sure), self._path, self._parts, tuple(self._left), tuple(self._offspring)
        )

    def _takes_back(self, step: Step) -> bool:
        """Whether the step reverts one that was met; its doubt goes, or what that took back is
        there again."""
        if not step.commit.is_revert:
            return False
        latest = reversed(self._met.values())
        met = next((one.sha for one in latest if step.commit.takes_back(one)), None)
        if met is None:
            return False
        self._met.pop(met)
        self._met[step.commit.sha] = step.commit
        self._taken[step.commit.sha] = self._marks.pop(met)
        again = self._taken.pop(met, None)
        self._marks[step.commit.sha] = again
        return True

    def _is_own(self, step: Step) -> bool:
        """Whether the step is of the commit that has what the memory's session wrote."""
        commit = step.commit
        if self._unsent is not None and commit.committed_at > self._unsent:
            self._sent = commit.sha if commit.committed_at - self._unsent <= WORK else None
            self._unsent = None
        return commit.sha == self._sent

    def _as_it_was(self) -> None:
        self._marks = dict.fromkeys(self._marks)
        self._parts = self._anchor.parts
        self._gone = False

    def _doubt(self, file: ChangedFile) -> Doubt | None:
        if self._emptied:
            return None
        if file.status == "deleted":
            return LINES_UNKNOWN if file.perhaps else GONE
        return grade_file(file, self._parts, self._anchor.words)

    def _edit(self, step: Step) -> None:
        file = step.file
        if file.status == "renamed" and file.old_path:
            self._left.append(self._path)
            self._path = file.path
        if file.status in {"modified", "renamed"}:
            self._move_out(step)
            self._parts = after(file, self._parts)
        self._gone = file.status == "deleted" and not file.perhaps

    def _move_out(self, step: Step) -> None:
        """Parts that went to another file get an anchor there."""
        for part in self._parts:
            moved = home(step.file, part)
            if moved is not None:
                start = moved.new_first + part.first - moved.first
                there = replace(part, first=start, last=start + part.last - part.first)
                self._offspring.append(Anchored(self._anchor.memory, moved.path, step.at, (there,)))
        stay = tuple(part for part in self._parts if home(step.file, part) is None)
        self._emptied = self._emptied or (bool(self._parts) and not stay)
        self._parts = stay

    def _mark(self, step: Step, doubt: Doubt | None, before: tuple[Part, ...]) -> None:
        sha = step.commit.sha
        self._met[sha] = step.commit
        self._marks.setdefault(sha, None)
        excused = self._anchor.checked is not None and step.at <= self._anchor.checked
        if doubt is None or doubt[1] < LEAST or excused:
            return
        lines = tuple((part.first, part.last) for part in self._parts or before if part.placed)
        mark = Mark(
            memory=self._anchor.memory,
            path=step.file.path,
            grade=doubt[0],
            score=round(doubt[1], 4),
            commit=sha,
            subject=step.commit.subject,
            committed_at=step.commit.committed_at,
            change=step.file.status,
            lines=lines,
        )
        stood = self._marks[sha]
        if stood is None or stood.score < mark.score:
            self._marks[sha] = mark

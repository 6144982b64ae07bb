"""Random edits of a repository, and the changed lines according to `git blame`."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from reverie.agent.git.change_builder import CommitRange, build_git_change
from reverie.agent.git.repository import GitRepository
from reverie.domain.staleness.anchor_tracking import AnchorTrail, track_anchor
from reverie.domain.staleness.file_changes import ChangeCommit, FileAnchor, FileChangeStep
from reverie.domain.staleness.grading import StaleGrade
from reverie.domain.staleness.line_ranges import LineRange
from reverie_services.staleness.marks.row_parsing import parse_changed_file

SPAN = 8
"""Lines of a memory."""


@dataclass(frozen=True)
class Checked:
    """Memories by what git says of their lines, and those of them that are marked stale or gone."""

    edited: int = 0
    missed: int = 0
    moved: int = 0
    flagged: int = 0

    def __add__(self, other: Checked) -> Checked:
        return Checked(
            self.edited + other.edited,
            self.missed + other.missed,
            self.moved + other.moved,
            self.flagged + other.flagged,
        )


class Edited:
    """A clone whose commits are made here; every line of code is unlike every other."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.repo = GitRepository(folder)
        self._dice = dice
        self._next = 0
        self._clock = 1_700_000_000
        folder.mkdir(parents=True, exist_ok=True)
        self._git("init", "-q", "-b", "main")
        self.path = "src/code.py"

    def begin(self, lines: int) -> str:
        """The first commit: a file of so many lines."""
        self._write([self._line() for _ in range(lines)])
        return self._commit()

    def edit(self) -> str:
        """One commit of a few edits, now and then with another name for the file."""
        lines = self._read()
        for _ in range(self._dice.randint(1, 3)):
            lines = self._edited(lines)
        if self._dice.random() < 0.15:
            self._next += 1
            renamed = f"src/code{self._next}.py"
            self._git("mv", self.path, renamed)
            self.path = renamed
        self._write(lines)
        return self._commit()

    def blamed(self) -> list[tuple[str, int]]:
        """Of each line now: the commit that wrote it and its number there."""
        told = self.repo.run_text("blame", "--porcelain", "HEAD", "--", self.path).splitlines()
        found = []
        for line in told:
            parts = line.split(" ")
            if len(parts) in {3, 4} and len(parts[0]) == 40:
                found.append((parts[0], int(parts[1])))
        return found

    def _edited(self, lines: list[str]) -> list[str]:
        at = self._dice.randrange(len(lines) + 1)
        many = self._dice.randint(1, 6)
        match self._dice.choice(["put", "put", "cut", "change"]):
            case "put":
                return [*lines[:at], *(self._line() for _ in range(many)), *lines[at:]]
            case "cut" if len(lines) > many + 10:
                return [*lines[:at], *lines[at + many :]]
            case _:
                new = [self._line() for _ in lines[at : at + many]]
                return [*lines[:at], *new, *lines[at + many :]]

    def _line(self) -> str:
        self._next += 1
        words = " + ".join(f"w{self._dice.randrange(10**6)}" for _ in range(3))
        return f"value_{self._next} = {words}"

    def _read(self) -> list[str]:
        return (self.repo.root / self.path).read_text().splitlines()

    def _write(self, lines: list[str]) -> None:
        path = self.repo.root / self.path
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def _commit(self) -> str:
        self._clock += 3600
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", f"commit {self._clock}")
        return self.repo.run_text("rev-parse", "HEAD")

    def _git(self, *args: str) -> None:
        when = f"{self._clock} +0000"
        who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": when}
        who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "HOME": "/nowhere"}
        env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_COMMITTER_DATE": when} | who
        subprocess.run(["git", *args], cwd=self.repo.root, env=env, check=True, capture_output=True)


def check(folder: Path, seed: int, commits: int, lines: int = 120) -> Checked:
    """Builds a repository, anchors a memory to each eight lines of its first commit, and compares
    the marks after all commits with what `git blame` says of the lines."""
    made = Edited(folder, random.Random(seed))
    first, path = made.begin(lines), made.path
    for _ in range(commits):
        made.edit()
    steps = _steps(made.repo, first)
    if not steps:
        return Checked()
    stand = {number for commit, number in made.blamed() if commit == first}
    order = [number for commit, number in made.blamed() if commit == first]
    now = {number: place for place, (c, number) in enumerate(made.blamed(), 1) if c == first}
    assert order == sorted(order)
    total = Checked()
    for start in range(1, lines - SPAN + 2, 3):
        own = range(start, start + SPAN)
        whole = all(n in stand for n in own) and now[own[-1]] - now[own[0]] == SPAN - 1
        parts = (LineRange(own[0], own[-1]),)
        anchor = FileAnchor(UUID(int=start), path, steps[0].at - timedelta(hours=1), parts)
        trail = track_anchor(anchor, steps, lambda a, b: a == b)
        total += _judged(trail, whole)
        if whole:
            assert trail.path == made.path
            assert not trail.marks or trail.ranges == (LineRange(now[own[0]], now[own[-1]]),)
    return total


def _judged(trail: AnchorTrail, whole: bool) -> Checked:
    flagged = any(mark.grade is not StaleGrade.SUSPECT for mark in trail.marks)
    if whole:
        return Checked(moved=1, flagged=int(flagged))
    return Checked(edited=1, missed=int(not flagged))


def _steps(repo: GitRepository, first: str) -> list[FileChangeStep]:
    """What the clone announces of its commits, as staleness reads it."""
    change = build_git_change(repo, "p", CommitRange("main", first, repo.head_commit))
    by_sha = {one.sha: one for one in change.commits}
    found = []
    for file in change.files:
        told = by_sha[file.commit or change.commits[-1].sha]
        commit = ChangeCommit(told.sha, told.subject, told.committed_at, told.reverts)
        found.append(
            FileChangeStep(
                parse_changed_file(file.model_dump(mode="json", exclude_defaults=True)),
                commit,
                told.committed_at,
            )
        )
    return found

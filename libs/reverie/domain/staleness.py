"""How far changes of files make a memory doubtful, on what evidence, and where its anchor went.

The rules, for a memory that speaks of a file, of lines in it or of symbols:

| what a change does to the file                            | grade   | score |
|-----------------------------------------------------------|---------|-------|
| deletes it, or the symbol, or all of the lines            | gone    | 1.0   |
| edits the lines, or the symbol                            | stale   | 0.8   |
| edits a line with an identifier that the memory names     | suspect | 0.5   |
| edits it, and nothing tells where, or of what it speaks   | suspect | 0.5   |
| edits it elsewhere                                        | suspect | 0.2   |
| moves the lines to another file, a share of them changed  | suspect | share |
| commits what the memory's own session had written         | suspect | 0.2   |
| renames or copies it, adds it, alters its mode            | none    |       |

What edits comments alone counts 0.3 of that, what edits white space alone 0.1, and neither makes
more than a suspect. A rename moves the anchor, and lines that moved to another file take theirs
along. A change that is taken back takes its doubt back: by a commit that says that it reverts it,
or by the file's content being what it was. Another file under the name of one that is gone is not
that file. Lines follow the edits before them.

Of the suspicions about one file one stands, the strongest; a memory learned at or after a commit
knows it. A score says how far to doubt, not that a memory is wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from reverie.domain.lines import Hunk, Part, carried, hits, removes


class Grade(StrEnum):
    """How far to doubt a memory, from the mildest."""

    SUSPECT = "suspect"
    STALE = "stale"
    GONE = "gone"


_RANK = {grade: rank for rank, grade in enumerate(Grade)}
Doubt = tuple[Grade, float]

GONE: Doubt = (Grade.GONE, 1.0)
TOUCHED: Doubt = (Grade.STALE, 0.8)
NAMED: Doubt = (Grade.SUSPECT, 0.5)
LINES_UNKNOWN: Doubt = (Grade.SUSPECT, 0.5)
ELSEWHERE: Doubt = (Grade.SUSPECT, 0.2)
LIGHT: Mapping[str, float] = {"comment": 0.3, "space": 0.1}
LEAST = 0.05
"""Below this a doubt is not worth telling."""
WORK = timedelta(days=1)
"""The first commit of a file within so long after a session wrote it has what the session wrote."""
LIKE = 0.6
"""How much of what moved must be as it was for an anchor to follow it."""


@dataclass(frozen=True)
class Commit:
    """A commit of a change; `reverts` is the one that it takes back, where it says so."""

    sha: str
    subject: str
    committed_at: datetime
    reverts: str | None = None

    @property
    def is_revert(self) -> bool:
        """Whether it says that it reverts some commit."""
        return bool(self.reverts) or self.subject.startswith('Revert "')

    def takes_back(self, other: Commit) -> bool:
        """Whether it says that it reverts the other, by its name or as git words a revert."""
        if self.reverts:
            return same_commit(other.sha, self.reverts)
        return bool(other.subject) and self.subject == f'Revert "{other.subject}"'


@dataclass(frozen=True)
class Edit:
    """A hunk, its kind (code, comment, space; None: unknown), the definitions it lies in or
    holds, and other identifiers in it."""

    hunk: Hunk
    kind: str | None = None
    symbols: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Moved:
    """Lines from `first` to `last` that went to another file, and how much of them is as it was."""

    first: int
    last: int
    path: str
    new_first: int
    similarity: float = 1.0


@dataclass(frozen=True)
class ChangedFile:
    """A changed file. `removed`: definitions that went; `cut`: not all edits are told;
    `perhaps`: the file was deleted here and may live on elsewhere."""

    path: str
    status: str
    old_path: str | None = None
    edits: tuple[Edit, ...] = ()
    moved: tuple[Moved, ...] = ()
    removed: frozenset[str] = frozenset()
    cut: bool = False
    perhaps: bool = False
    old_blob: str | None = None
    new_blob: str | None = None

    @property
    def known_as(self) -> str:
        """The path before the change, which is the one that a memory knows."""
        return self.old_path if self.status == "renamed" and self.old_path else self.path


@dataclass(frozen=True)
class Step:
    """A change of one file: the commit to blame, and from when on it stood on its branch."""

    file: ChangedFile
    commit: Commit
    at: datetime


@dataclass(frozen=True)
class Anchored:
    """A memory and a file that it speaks of, as they stood at `known_at`.

    `parts` are the lines and symbols in it, `words` the identifiers that the memory names, `blob`
    git's name of the content, each as far as it is known. `checked`: when it was last said that
    the memory holds; what was changed before moves it, and casts no doubt. `wrote`: when the
    session that the memory comes from had last written the file by then.
    """

    memory: UUID
    path: str
    known_at: datetime
    parts: tuple[Part, ...] = ()
    words: frozenset[str] = frozenset()
    blob: str | None = None
    checked: datetime | None = None
    wrote: datetime | None = None


@dataclass(frozen=True)
class Mark:
    """Why one memory may be stale. `change` is the file's status; `path` its path then; `lines`
    where those of the memory stand after it."""

    memory: UUID
    path: str
    grade: Grade
    score: float
    commit: str
    subject: str
    committed_at: datetime
    change: str
    lines: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """All the doubts about one memory together."""

    grade: Grade
    score: float


def grade_file(
    file: ChangedFile, parts: tuple[Part, ...] = (), words: frozenset[str] = frozenset()
) -> Doubt | None:
    """The rule of the table above for an edit of a file that stays, and what a memory speaks of."""
    if file.status not in {"modified", "renamed"}:
        return None
    if not file.edits:
        return None if file.status == "renamed" and not file.cut else LINES_UNKNOWN
    gone = [there for part in parts if (there := home(file, part)) is not None]
    doubts = [(Grade.SUSPECT, 1 - one.similarity) for one in gone]
    stay = [part for part in parts if home(file, part) is None]
    if stay or not parts:
        doubts += [_grade_edit(edit, file, stay, words) for edit in file.edits]
    if file.cut:
        doubts.append(LINES_UNKNOWN)
    return max(doubts, key=lambda doubt: (_RANK[doubt[0]], doubt[1]))


def _grade_edit(edit: Edit, file: ChangedFile, parts: list[Part], words: frozenset[str]) -> Doubt:
    doubt = _grade_parts(edit, file, parts) if parts else _grade_words(edit, file, words)
    light = LIGHT.get(edit.kind or "")
    return doubt if light is None else (Grade.SUSPECT, doubt[1] * light)


def _grade_parts(edit: Edit, file: ChangedFile, parts: Iterable[Part]) -> Doubt:
    worst = ELSEWHERE
    for part in parts:
        if part.name in file.removed or (part.placed and removes(edit.hunk, part)):
            return GONE
        # A definition's name stands also for its namesakes: lines, where they are known, decide.
        met = hits(edit.hunk, part) if part.placed else part.name in edit.symbols
        worst = TOUCHED if met else worst
    return worst


def _grade_words(edit: Edit, file: ChangedFile, words: frozenset[str]) -> Doubt:
    """For a memory that is known to speak of the file and of no lines in it."""
    if not words or not (edit.symbols or edit.words):
        return LINES_UNKNOWN
    if words & file.removed:
        return GONE
    if words & edit.symbols:
        return TOUCHED
    return NAMED if words & edit.words else ELSEWHERE


def after(file: ChangedFile, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Where the parts stand after an edit of their file; without lines where not all is told."""
    if file.status == "renamed" and not file.edits and not file.cut:
        return parts
    if not file.edits or file.cut:
        return tuple(replace(part, first=0, last=0) for part in parts if part.name)
    hunks = [edit.hunk for edit in file.edits]
    return tuple(carried(part, hunks) for part in parts)


def home(file: ChangedFile, part: Part) -> Moved | None:
    """Where a part went, if it went to one other file and is there much as it was."""
    if not part.placed:
        return None
    within = (
        one
        for one in file.moved
        if one.first <= part.first and part.last <= one.last and one.similarity >= LIKE
    )
    return max(within, key=lambda one: one.similarity, default=None)


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


def verdict(doubts: Iterable[Doubt]) -> Verdict:
    """At least one doubt as one: the worst grade, the scores joined by noisy-or."""
    grades, scores = zip(*doubts, strict=True)
    trust = math.prod(1 - score for score in sorted(scores))
    return Verdict(worst(grades), min(1.0, 1 - trust))


def worst(grades: Iterable[Grade]) -> Grade:
    """The gravest of at least one grade."""
    return max(grades, key=_RANK.__getitem__)


def same_commit(sha: str, named: str) -> bool:
    """Whether two names, either of them abbreviated, are of one commit."""
    return sha.startswith(named) or named.startswith(sha)

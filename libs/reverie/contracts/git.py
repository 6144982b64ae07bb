"""Bodies of git changes and staleness.

A change is told once by (project, branch, after); a forced push and the end of a branch by what
stood before, too. `files` are applied in their order, each against the state that those before it
left: a path may stand there once for each commit that touched it. Its `commit` is the one to
blame. An event of `detail: files` comes from a source that knows neither hunks nor renames: there
a deleted file that may live on elsewhere says where (`perhaps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from reverie.contracts.base import Answer, LineNo, Moment, Name, Page, RepoPath, Request, Text, Unit
from reverie.contracts.memories import GitPlace, MemoryBody

LAST_LINE = 2**31 - 1
MAX_FILES = 50_000
MAX_COMMITS = 10_000
MAX_HUNKS = 10_000
MAX_WORDS = 64
MAX_SOURCE = 4_000
HEADS = "refs/heads/"


def _no_zeros(given: object) -> object:
    """Git writes zeros for a commit that is none."""
    zeros = isinstance(given, str) and 7 <= len(given) <= 64 and not given.strip("0")
    return None if zeros else given


def _branch(name: str) -> str:
    """The short name of a branch; a tag is none."""
    if name.startswith("refs/") and not name.startswith(HEADS):
        raise ValueError("is not a branch")
    return name.removeprefix(HEADS)


def _short(given: object) -> object:
    """A hunk may be written as its four numbers."""
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 4:
        return dict(zip(("old_start", "old_lines", "new_start", "new_lines"), given, strict=True))
    return given


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
SomeSha = Annotated[Sha | None, BeforeValidator(_no_zeros)]
Branch = Annotated[Name, AfterValidator(_branch)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Words = Annotated[list[Word], Field(default_factory=list, max_length=MAX_WORDS)]
Status = Literal["added", "modified", "deleted", "renamed", "copied", "mode"]


class Commit(Request):
    """A commit of a change. `reached_at`: when a merge brought it to the branch, where one did.
    `reverts`: the one that it says it takes back."""

    sha: Sha
    subject: Annotated[str, StringConstraints(max_length=2000)] = ""
    committed_at: Moment
    reached_at: Moment | None = None
    parents: list[Sha] = Field(default_factory=list, max_length=100)
    reverts: Sha | None = None


class Hunk(Request):
    """Lines that were replaced, as `git diff --unified=0` counts them; `[os, ol, ns, nl]` will do.

    Of no lines (`old_lines` 0, an insertion) the start is the line before. `kind`: what the change
    amounts to where that is known: `space` and `comment` alter no code. `header`: what git prints
    after the second `@@`. `symbols`: the definitions that the lines lie in or hold, by their plain
    name; `words`: other identifiers of code in the changed lines, neither comments nor strings.
    `text`: the lines themselves, with - and + before them, where the publisher chose to send
    source; a language model that looks over doubted memories reads them.
    """

    old_start: LineNo
    old_lines: LineNo
    new_start: LineNo
    new_lines: LineNo
    kind: Literal["code", "comment", "space"] | None = None
    header: Annotated[str, StringConstraints(max_length=500)] = ""
    text: Annotated[str, StringConstraints(max_length=MAX_SOURCE)] = ""
    symbols: Words
    words: Words

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Old start, old lines, new start, new lines."""
        return self.old_start, self.old_lines, self.new_start, self.new_lines

    @model_validator(mode="after")
    def _tellable(self) -> Self:
        for side, start, lines in (
            ("old", self.old_start, self.old_lines),
            ("new", self.new_start, self.new_lines),
        ):
            if lines and not start:
                raise ValueError(f"{side}_start of a hunk with lines is at least 1")
            if start + lines > LAST_LINE:
                raise ValueError(f"its {side} lines end beyond line {LAST_LINE}")
        return self


def _apart(hunks: list[Hunk]) -> list[Hunk]:
    """The hunks, none of which shares a line with another, on either side."""
    for side in (0, 2):
        last = 0
        for start, lines in sorted(h.place[side : side + 2] for h in hunks):
            if lines and start <= last:
                raise ValueError("hunks overlap")
            last = max(last, start + lines - 1)
    return hunks


class MovedLines(Request):
    """Lines that left this file for another one: `similarity` of what stands there now, 0 to 1."""

    old_start: LineNo
    lines: LineNo
    path: RepoPath
    new_start: LineNo
    similarity: Unit = 1.0


class SymbolChange(Request):
    """A definition that a change added, altered or removed. `path`: where it went, if it moved."""

    name: Word
    change: Literal["added", "modified", "removed", "moved"]
    path: RepoPath | None = None


class FileChange(Request):
    """A changed file, against what the entries before it left.

    `commit`: the one that touched it. `cut`: not all hunks are told. `binary`: it has no lines.
    `old_blob` and `new_blob` are git's names of its content before and after, so that a change
    back can be known. `perhaps`: where a deleted file may live on.
    """

    path: RepoPath
    status: Status
    old_path: RepoPath | None = None
    similarity: Unit | None = None
    hunks: Annotated[
        list[Annotated[Hunk, BeforeValidator(_short)]],
        Field(default_factory=list, max_length=MAX_HUNKS),
        AfterValidator(_apart),
    ]
    cut: bool = False
    binary: bool = False
    commit: Sha | None = None
    old_blob: SomeSha = None
    new_blob: SomeSha = None
    moved: list[MovedLines] = Field(default_factory=list, max_length=1000)
    symbols: list[SymbolChange] = Field(default_factory=list, max_length=1000)
    perhaps: RepoPath | None = None


class GitChange(Request):
    """`POST /v1/git/changes`: what a push changed.

    `before` null (or zeros): the branch is new. `after` null: it was `deleted`. `forced`: `before`
    is no ancestor of `after`. `merge`: the push brought other branches in; `merged` names those
    that are known. `uncommitted`: `after` is a state of a work tree. `detail`: `lines` where hunks
    and renames are told, `files` where they cannot be. `partial`: the source left commits out.
    """

    v: Literal[1] = 1
    project: Name
    repository: Annotated[Text, StringConstraints(max_length=500)] | None = None
    branch: Branch
    default_branch: Branch | None = None
    before: SomeSha = None
    after: SomeSha = None
    forced: bool = False
    deleted: bool = False
    uncommitted: bool = False
    merge: bool = False
    merged: list[Name] = Field(default_factory=list, max_length=100)
    detail: Literal["lines", "files"] = "lines"
    partial: bool = False
    commits: list[Commit] = Field(default_factory=list, max_length=MAX_COMMITS)
    files: list[FileChange] = Field(default_factory=list, max_length=MAX_FILES)

    @property
    def told_as(self) -> str:
        """What it is told once by, beside project and branch: the commit that stands now; where
        one may come back (a forced push, the end of a branch) also the one that stood before, and
        where it tells no more than that a branch was merged that branch."""
        after = self.after or "deleted"
        if self.merged and not self.commits:
            return f"{after} with {self.merged[0]}"
        return f"{after} after {self.before}" if self.forced or self.deleted else after


class GitAccepted(Answer):
    """The event stored; `duplicate` where the same change was announced before."""

    event: UUID
    duplicate: bool


class Lacking(Answer):
    """A memory of which it is known which files it touches, and nothing in them."""

    memory: UUID
    content: str
    learned_at: AwareDatetime
    files: list[str]


class LackingPage(Page):
    """`GET /v1/git/anchors`."""

    items: list[Lacking]


class Anchor(Request):
    """Where a memory belongs, as somebody beside the code has found."""

    memory: UUID
    git: GitPlace


class Anchors(Request):
    """`POST /v1/git/anchors`: of memories of one project."""

    project: Name
    anchors: Annotated[list[Anchor], Field(min_length=1, max_length=200)]


class Anchored(Answer):
    """How many memories touch the files that were sent."""

    anchored: int


class Evidence(Answer):
    """Why a memory may be stale. `lines`: where in the file those of the memory are after the
    change; `way`: from the file over memories and edges to this one, without those that the key
    may not read."""

    commit: str
    subject: str
    committed_at: AwareDatetime
    path: str
    change: str
    grade: str
    score: float
    lines: list[tuple[int, int]] = Field(default_factory=list)
    way: list[str] = Field(default_factory=list)


class StaleItem(Answer):
    """A memory that may no longer be true, with the evidence, newest first."""

    memory: MemoryBody
    grade: str
    score: float
    evidence: list[Evidence]


class StalePage(Page):
    """`GET /v1/stale`. `said`: what the page comes to, in a sentence a file."""

    items: list[StaleItem]
    said: list[str] = Field(default_factory=list)

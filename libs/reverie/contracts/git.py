"""Bodies of git changes, code anchors, stale memories and their reviews.

A change is identified by project, branch and `after`; a forced push or a deleted branch also by
`before`. `files` are applied in order, each against the state left by the entries before it, so
that a path may occur once for each commit that touched it. With `detail: files` the source knows
neither hunks nor renames."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
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

from reverie.contracts.base import (
    LineNumber,
    Name,
    NonBlankStr,
    PageResponse,
    RepoPath,
    RequestBody,
    ResponseBody,
    Timestamp,
    UnitInterval,
)
from reverie.contracts.memories import GitLocation, MemoryBody

MAX_LINE_NUMBER = 2**31 - 1
MAX_FILES = 50_000
MAX_COMMITS = 10_000
MAX_HUNKS = 10_000
MAX_IDENTIFIERS = 64
MAX_HUNK_TEXT = 4_000
BRANCH_REF_PREFIX = "refs/heads/"


def _zeros_to_none(value: object) -> object:
    """Git writes zeros for a commit that is none."""
    zeros = isinstance(value, str) and 7 <= len(value) <= 64 and not value.strip("0")
    return None if zeros else value


def _short_branch_name(name: str) -> str:
    """The short name of a branch; a tag is none."""
    if name.startswith("refs/") and not name.startswith(BRANCH_REF_PREFIX):
        raise ValueError("is not a branch")
    return name.removeprefix(BRANCH_REF_PREFIX)


def _expand_hunk_numbers(value: object) -> object:
    """A hunk may be written as its four numbers."""
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 4:
        return dict(zip(("old_start", "old_lines", "new_start", "new_lines"), value, strict=True))
    return value


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
OptionalSha = Annotated[Sha | None, BeforeValidator(_zeros_to_none)]
BranchName = Annotated[Name, AfterValidator(_short_branch_name)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200)]
IdentifierList = Annotated[
    list[Identifier], Field(default_factory=list, max_length=MAX_IDENTIFIERS)
]
FileStatus = Literal["added", "modified", "deleted", "renamed", "copied", "mode"]


class CommitBody(RequestBody):
    """A commit of a change. `merged_at`: when a merge brought it to the branch, where one did.
    `reverts`: the one that it says it takes back."""

    sha: Sha
    subject: Annotated[str, StringConstraints(max_length=2000)] = ""
    committed_at: Timestamp
    merged_at: Timestamp | None = None
    parents: list[Sha] = Field(default_factory=list, max_length=100)
    reverts: Sha | None = None


class HunkBody(RequestBody):
    """Lines that were replaced, as `git diff --unified=0` counts them; `[os, ol, ns, nl]` will do.

    Of no lines (`old_lines` 0, an insertion) the start is the line before. `kind`: what the change
    amounts to where that is known: `space` and `comment` alter no code. `header`: what git prints
    after the second `@@`. `symbols`: the definitions that the lines lie in or hold, by their plain
    name; `words`: other identifiers of code in the changed lines, neither comments nor strings.
    `text`: the lines themselves, with - and + before them, where the publisher chose to send
    source; a language model that looks over doubted memories reads them.
    """

    old_start: LineNumber
    old_lines: LineNumber
    new_start: LineNumber
    new_lines: LineNumber
    kind: Literal["code", "comment", "space"] | None = None
    header: Annotated[str, StringConstraints(max_length=500)] = ""
    text: Annotated[str, StringConstraints(max_length=MAX_HUNK_TEXT)] = ""
    symbols: IdentifierList
    identifiers: IdentifierList

    @property
    def line_ranges(self) -> tuple[int, int, int, int]:
        """Old start, old lines, new start, new lines."""
        return self.old_start, self.old_lines, self.new_start, self.new_lines

    @model_validator(mode="after")
    def _check_line_ranges(self) -> Self:
        for side, start, lines in (
            ("old", self.old_start, self.old_lines),
            ("new", self.new_start, self.new_lines),
        ):
            if lines and not start:
                raise ValueError(f"{side}_start of a hunk with lines is at least 1")
            if start + lines > MAX_LINE_NUMBER:
                raise ValueError(f"its {side} lines end beyond line {MAX_LINE_NUMBER}")
        return self


def _reject_overlapping_hunks(hunks: list[HunkBody]) -> list[HunkBody]:
    """The hunks, none of which shares a line with another, on either side."""
    for side in (0, 2):
        last_line = 0
        for start, lines in sorted(hunk.line_ranges[side : side + 2] for hunk in hunks):
            if lines and start <= last_line:
                raise ValueError("hunks overlap")
            last_line = max(last_line, start + lines - 1)
    return hunks


class MovedLines(RequestBody):
    """Lines that left this file for another one: `similarity` of what stands there now, 0 to 1."""

    old_start: LineNumber
    lines: LineNumber
    path: RepoPath
    new_start: LineNumber
    similarity: UnitInterval = 1.0


class SymbolChange(RequestBody):
    """A definition that a change added, altered or removed. `path`: where it went, if it moved."""

    name: Identifier
    change: Literal["added", "modified", "removed", "moved"]
    path: RepoPath | None = None


class FileChange(RequestBody):
    """A changed file, against what the entries before it left.

    `commit`: the one that touched it. `cut`: not all hunks are told. `binary`: it has no lines.
    `old_blob` and `new_blob` are git's names of its content before and after, so that a change
    back can be known. `perhaps`: where a deleted file may live on.
    """

    path: RepoPath
    status: FileStatus
    old_path: RepoPath | None = None
    similarity: UnitInterval | None = None
    hunks: Annotated[
        list[Annotated[HunkBody, BeforeValidator(_expand_hunk_numbers)]],
        Field(default_factory=list, max_length=MAX_HUNKS),
        AfterValidator(_reject_overlapping_hunks),
    ]
    truncated: bool = False
    binary: bool = False
    commit: Sha | None = None
    old_blob: OptionalSha = None
    new_blob: OptionalSha = None
    moved: list[MovedLines] = Field(default_factory=list, max_length=1000)
    symbols: list[SymbolChange] = Field(default_factory=list, max_length=1000)
    possible_path: RepoPath | None = None


class GitChange(RequestBody):
    """`POST /v1/git/changes`: what a push changed.

    `before` null (or zeros): the branch is new. `after` null: it was `deleted`. `forced`: `before`
    is no ancestor of `after`. `merge`: the push brought other branches in; `merged` names those
    that are known. `uncommitted`: `after` is a state of a work tree. `detail`: `lines` where hunks
    and renames are told, `files` where they cannot be. `partial`: the source left commits out.
    """

    v: Literal[1] = 1
    project: Name
    repository: Annotated[NonBlankStr, StringConstraints(max_length=500)] | None = None
    branch: BranchName
    default_branch: BranchName | None = None
    before: OptionalSha = None
    after: OptionalSha = None
    forced: bool = False
    deleted: bool = False
    uncommitted: bool = False
    merge: bool = False
    merged: list[Name] = Field(default_factory=list, max_length=100)
    detail: Literal["lines", "files"] = "lines"
    partial: bool = False
    commits: list[CommitBody] = Field(default_factory=list, max_length=MAX_COMMITS)
    files: list[FileChange] = Field(default_factory=list, max_length=MAX_FILES)

    @property
    def deduplication_key(self) -> str:
        """What it is told once by, beside project and branch: the commit that stands now; where
        one may come back (a forced push, the end of a branch) also the one that stood before, and
        where it tells no more than that a branch was merged that branch."""
        after = self.after or "deleted"
        if self.merged and not self.commits:
            return f"{after} with {self.merged[0]}"
        return f"{after} after {self.before}" if self.forced or self.deleted else after


class GitChangeResponse(ResponseBody):
    """The event stored; `duplicate` where the same change was announced before."""

    event: UUID
    duplicate: bool


class UnanchoredMemory(ResponseBody):
    """A memory of which it is known which files it touches, and nothing in them."""

    memory: UUID
    content: str
    created_at: AwareDatetime
    files: list[str]


class UnanchoredPage(PageResponse):
    """`GET /v1/git/anchors`."""

    items: list[UnanchoredMemory]


class MemoryAnchor(RequestBody):
    """Where a memory belongs, as somebody beside the code has found."""

    memory: UUID
    git: GitLocation


class AnchorMemoriesRequest(RequestBody):
    """`POST /v1/git/anchors`: of memories of one project."""

    project: Name
    anchors: Annotated[list[MemoryAnchor], Field(min_length=1, max_length=200)]


class AnchorMemoriesResponse(ResponseBody):
    """How many memories touch the files that were sent."""

    anchored: int


class StaleEvidence(ResponseBody):
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
    via: list[str] = Field(default_factory=list)


class StaleMemoryBody(ResponseBody):
    """A memory that may no longer be true, with the evidence, newest first."""

    memory: MemoryBody
    grade: str
    score: float
    evidence: list[StaleEvidence]


class StalePage(PageResponse):
    """`GET /v1/stale`. `said`: what the page comes to, in a sentence a file."""

    items: list[StaleMemoryBody]
    messages: list[str] = Field(default_factory=list)


ReviewState = Literal["open", "accepted", "rejected"]


class ReviewBody(ResponseBody):
    """What is said of a memory at a version. `holds`, `changed` (it should read `content`), `gone`,
    or `unsure`; `told`: what it says now; `generated_by`: prompt and model."""

    id: UUID
    memory: UUID
    version: int
    scope: str
    current_content: str
    verdict: Literal["holds", "changed", "gone", "unsure"]
    content: str | None = None
    reason: str
    generated_by: str
    state: ReviewState
    created_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None


class ReviewPage(PageResponse):
    """`GET /v1/reviews`."""

    items: list[ReviewBody]


class ReviewDecisionResponse(ResponseBody):
    """`POST /v1/reviews/{id}/accept` and `/reject`."""

    id: UUID
    memory: UUID
    state: ReviewState

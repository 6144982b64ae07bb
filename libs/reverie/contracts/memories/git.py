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
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
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
from reverie.contracts.memories.memories import GitLocation, MemoryBody
from reverie.domain.access.scopes import MAIN_BRANCHES

MAX_LINE_NUMBER = 2**31 - 1
MAX_FILES = 50_000
MAX_COMMITS = 10_000
MAX_HUNKS = 10_000
MAX_IDENTIFIERS = 64
MAX_HUNK_TEXT = 4_000
MAX_SUBJECT = 2_000
MAX_COMMIT_BODY = 20_000
BRANCH_REF_PREFIX = "refs/heads/"


def _zeros_to_none(value: object) -> object:
    """Git writes zeros for a commit that does not exist."""
    zeros = isinstance(value, str) and 7 <= len(value) <= 64 and not value.strip("0")
    return None if zeros else value


def _short_branch_name(name: str) -> str:
    """The short name of a branch. Raises ValueError for another ref, such as a tag."""
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
    """A commit of a change.

    `body` is the message below the subject: what it decides or explains becomes a memory.
    `merged_at` is the time when a merge brought the commit to the branch. `reverts` is the commit
    that its message says it reverts.
    """

    sha: Sha
    subject: Annotated[str, StringConstraints(max_length=MAX_SUBJECT)] = ""
    body: Annotated[str, StringConstraints(max_length=MAX_COMMIT_BODY)] = ""
    committed_at: Timestamp
    merged_at: Timestamp | None = None
    parents: list[Sha] = Field(default_factory=list, max_length=100)
    reverts: Sha | None = None


class HunkBody(RequestBody):
    """Replaced lines, numbered as in `git diff --unified=0`. `[os, ol, ns, nl]` is a short form.

    For an insertion, `old_lines` is 0 and `old_start` is the line before it. `kind` is the kind of
    change if known; `space` and `comment` alter no code. `header` is the text that git prints after
    the second `@@`. `symbols` names definitions that contain the lines or lie in them.
    `identifiers` lists other identifiers in the changed code, without comments and strings. `text`
    holds the lines with - and + if the publisher sends source. A language model reads `text` to
    review stale memories.
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
    """Returns the hunks. Raises ValueError if two share a line on the old or the new side."""
    for side in (0, 2):
        last_line = 0
        for start, lines in sorted(hunk.line_ranges[side : side + 2] for hunk in hunks):
            if lines and start <= last_line:
                raise ValueError("hunks overlap")
            last_line = max(last_line, start + lines - 1)
    return hunks


class MovedLines(RequestBody):
    """Lines that moved from this file to another. `similarity` compares them with the new lines, 0
    to 1.
    """

    old_start: LineNumber
    lines: LineNumber
    path: RepoPath
    new_start: LineNumber
    similarity: UnitInterval = 1.0


class SymbolChange(RequestBody):
    """A definition that a change added, modified, removed or moved. `path` is its new file if it
    moved.
    """

    name: Identifier
    change: Literal["added", "modified", "removed", "moved"]
    path: RepoPath | None = None


class FileChange(RequestBody):
    """A changed file, relative to the state after the previous entries.

    `commit` is the commit that changed it. `truncated` means that hunks are missing. `binary` means
    that the file has no lines. `old_blob` and `new_blob` are git's blob ids before and after; they
    reveal a reverted change. `possible_path` is a probable new path of a deleted file.
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
    """`POST /v1/git/changes`: the changes of a push.

    A null or all-zero `before` means a new branch. A null `after` means a `deleted` branch.
    `forced` means that `before` is not an ancestor of `after`. `merge` means that the push merged
    other branches; `merged` names the known ones. `uncommitted` means that `after` is a state of a
    work tree. `detail` is `lines` if hunks and renames are included, otherwise `files`. `partial`
    means that the source omitted commits.
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
    def is_on_main_branch(self) -> bool:
        """Whether it is of the branch that everyone works on."""
        if self.default_branch is not None:
            return self.branch == self.default_branch
        return self.branch in MAIN_BRANCHES

    @property
    def deduplication_key(self) -> str:
        """Identifies the change together with project and branch: the commit in `after`.

        A forced push or a deleted branch adds `before`, because its commit may recur. A change
        that only reports a merged branch adds the name of that branch.
        """
        after = self.after or "deleted"
        if self.merged and not self.commits:
            return f"{after} with {self.merged[0]}"
        return f"{after} after {self.before}" if self.forced or self.deleted else after


class GitChangeResponse(ResponseBody):
    """The stored event. `duplicate` means that the same change was announced before.

    `hints` names merged branches that had no effect, a project that was not known before, and how
    many commits were not remembered.
    """

    event: UUID
    duplicate: bool
    hints: list[str] = Field(default_factory=list)


class UnanchoredMemory(ResponseBody):
    """A memory with known files, but without lines or symbols in them."""

    memory: UUID
    content: str
    created_at: AwareDatetime
    files: list[str]


class UnanchoredPage(PageResponse):
    """`GET /v1/git/anchors`."""

    items: list[UnanchoredMemory]


class MemoryAnchor(RequestBody):
    """The location of a memory in the code, found by a client with a checkout."""

    memory: UUID
    git: GitLocation


class AnchorMemoriesRequest(RequestBody):
    """`POST /v1/git/anchors`: locations of memories of one project."""

    project: Name
    anchors: Annotated[list[MemoryAnchor], Field(min_length=1, max_length=200)]


class AnchorMemoriesResponse(ResponseBody):
    """The number of memories that were linked to the given files."""

    anchored: int


def _lines_or_empty(value: object, parse: ValidatorFunctionWrapHandler) -> object:
    """The line ranges, or none if they are malformed: one bad row must not fail a list."""
    try:
        return parse(value)
    except ValidationError:
        return []


EvidenceLines = Annotated[list[tuple[int, int]], WrapValidator(_lines_or_empty)]


class StaleEvidence(ResponseBody):
    """A reason why a memory may be stale.

    `lines` are the lines of the memory in the file after the change. `via` is the path from the
    file to the memory over other memories. It omits memories that the key may not read. If the key
    may not read the memory that touches the file, path and subject are `…`.
    """

    commit: str
    subject: str
    committed_at: AwareDatetime
    path: str
    change: str
    grade: str
    score: float
    lines: EvidenceLines = Field(default_factory=list)
    via: list[str] = Field(default_factory=list)


class StaleMemoryBody(ResponseBody):
    """A memory that may be stale, with the evidence, newest first."""

    memory: MemoryBody
    grade: str
    score: float
    evidence: list[StaleEvidence]


class ChangeBacklogBody(ResponseBody):
    """How many git changes wait to be applied, 1,000 at most, and since when the oldest does.

    Those that failed each time are among them.
    """

    waiting: int
    since: AwareDatetime | None = None


class StalePage(PageResponse):
    """`GET /v1/stale`. `messages` summarizes the page in one sentence for each file.

    `changes` says what is announced and not applied yet; memories that it concerns are missing.
    """

    items: list[StaleMemoryBody]
    messages: list[str] = Field(default_factory=list)
    changes: ChangeBacklogBody


ReviewState = Literal["open", "accepted", "rejected"]


class ReviewBody(ResponseBody):
    """A language model's review of a memory at a version.

    `verdict` is `holds`, `changed` (`content` is the proposed text), `gone` or `unsure`.
    `current_content` is the content of the memory now. `generated_by` names the prompt and the
    model.
    """

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

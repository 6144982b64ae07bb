"""Bodies of git changes and staleness."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from reverie.contracts.base import Answer, LineNo, Moment, Name, Page, RepoPath, Request
from reverie.contracts.memories import MemoryBody


class Commit(Request):
    """A commit of a change."""

    sha: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
    subject: Annotated[str, StringConstraints(max_length=2000)] = ""
    committed_at: Moment


class FileChange(Request):
    """A changed file. A hunk is [old start, old lines, new start, new lines]."""

    path: RepoPath
    status: Literal["added", "modified", "deleted", "renamed", "copied", "mode"]
    old_path: RepoPath | None = None
    hunks: list[tuple[LineNo, LineNo, LineNo, LineNo]] = Field(default_factory=list)
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")] | None = None


class GitChange(Request):
    """`POST /v1/git/changes`: what a push changed, told once by (project, branch, after)."""

    project: Name
    branch: Name
    before: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")] | None = None
    after: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
    commits: list[Commit] = Field(min_length=1, max_length=10_000)
    files: list[FileChange] = Field(max_length=50_000)


class GitAccepted(Answer):
    """The event stored; `duplicate` where the same change was announced before."""

    event: UUID
    duplicate: bool


class Evidence(Answer):
    """Why a memory may be stale."""

    commit: str
    subject: str
    committed_at: AwareDatetime
    path: str
    change: str
    grade: str
    score: float


class StaleItem(Answer):
    """A memory that may no longer be true, with the evidence, newest first."""

    memory: MemoryBody
    grade: str
    score: float
    evidence: list[Evidence]


class StalePage(Page):
    """`GET /v1/stale`."""

    items: list[StaleItem]

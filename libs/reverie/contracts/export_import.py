"""Records of an export file, and the response of an import.

The first line is an `ExportHeader`; every other line is a record with a `type`. Unknown fields of
a record are carried along unchanged.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from reverie.contracts.base import (
    Name,
    NonBlankStr,
    RepoPath,
    ResponseBody,
    Tag,
    Timestamp,
    UnitInterval,
)
from reverie.contracts.context import ContextBudgetsUpdate
from reverie.contracts.dreams import DreamLimitsUpdate, LlmBudgetUpdate

EXPORT_FORMAT = "reverie"
EXPORT_VERSION = 1

NonNegativeInt32 = Annotated[int, Field(ge=0, le=2**31 - 1)]
MessageRole = Literal["user", "assistant", "tool", "system"]


class ExportRecord(BaseModel):
    """A record on one line. Unknown fields are allowed, because a later version may add some."""

    model_config = ConfigDict(extra="allow", frozen=True)


class ExportHeader(ExportRecord):
    """The first line."""

    type: Literal["header"]
    format: Literal["reverie"]
    version: Literal[1]


class ExportedUtterances(ExportRecord):
    """How often a session stated a memory. The nil UUID means no session."""

    session: UUID
    times: NonNegativeInt32
    first: Timestamp
    last: Timestamp


class ExportedUsage(ExportRecord):
    """How readers used a memory."""

    count: NonNegativeInt32
    last: Timestamp | None = None
    boost: UnitInterval


class ExportedTaskState(ExportRecord):
    """The state of a task, and its current claim."""

    state: Literal["todo", "doing", "blocked", "done"]
    claimed_by: str | None = None
    claimed_until: Timestamp | None = None


class ExportedStaleMark(ExportRecord):
    """A code change that made a memory stale."""

    commit: Name
    path: RepoPath
    grade: Literal["suspect", "stale", "gone"]
    score: UnitInterval
    change: str
    subject: str
    committed_at: Timestamp
    event: UUID
    created: Timestamp
    cleared: Timestamp | None = None


class ExportedMemory(ExportRecord):
    """A memory with the data that belongs only to it.

    `settled` means that the file contains its anchors and edges, and that duplicate detection has
    processed it.
    """

    id: UUID
    scope: NonBlankStr
    kind: Name
    tier: Literal["hot", "warm", "cold"]
    status: Literal["active", "superseded", "archived"]
    version: Annotated[int, Field(ge=1, le=2**31 - 2)]
    content: Annotated[str, Field(min_length=1)]
    confidence: UnitInterval
    pinned: bool
    source: Name
    created: Timestamp
    updated: Timestamp
    key: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    summary: str | None = None
    session: UUID | None = None
    agent: str | None = None
    git: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    superseded_by: UUID | None = None
    merged_into: UUID | None = None
    settled: bool = False
    tags: list[Tag] = Field(default_factory=list, max_length=500)
    turns: list[UUID] = Field(default_factory=list)
    utterances: list[ExportedUtterances] = Field(default_factory=list)
    usage: ExportedUsage | None = None
    task: ExportedTaskState | None = None
    stale: list[ExportedStaleMark] = Field(default_factory=list)


class ExportedMemoryVersion(ExportRecord):
    """An earlier version of a memory."""

    memory: UUID
    version: NonNegativeInt32
    content: str
    reason: str
    state: dict[str, Any] = Field(default_factory=dict)
    known_from: Timestamp
    known_to: Timestamp


class ExportedEdge(ExportRecord):
    """An edge. A closed edge has a `known_to`."""

    id: UUID
    src: UUID
    kind: Name
    dst: UUID
    weight: UnitInterval
    meta: dict[str, Any] = Field(default_factory=dict)
    known_from: Timestamp
    known_to: Timestamp | None = None


class ExportedAnchor(ExportRecord):
    """The path of a file node."""

    node: UUID
    project: Name
    path: RepoPath
    name: NonBlankStr


class ExportedScopeSummary(ExportRecord):
    """The summary of a scope."""

    scope: NonBlankStr
    version: NonNegativeInt32
    content: str
    tokens: NonNegativeInt32
    updated: Timestamp


class ExportedScopeName(ExportRecord):
    """The original name of a scope whose last segment is a slug."""

    scope: NonBlankStr
    name: Name


class ExportedProjectSetting(ExportRecord):
    """A setting of a project, or of the tenant if `project` is `*`.

    It holds the context budgets, the dream thresholds or the language model budget.
    """

    project: Name
    name: Literal["context", "dream", "llm"]
    value: ContextBudgetsUpdate | DreamLimitsUpdate | LlmBudgetUpdate
    updated: Timestamp


class ExportedSession(ExportRecord):
    """A session."""

    id: UUID
    agent: Name
    scope: NonBlankStr
    started: Timestamp
    appended: Timestamp
    ended: Timestamp | None = None
    external_id: str | None = None


class ExportedTurn(ExportRecord):
    """A turn of a session."""

    id: UUID
    session: UUID
    ordinal: NonNegativeInt32
    role: MessageRole
    content: str
    at: Timestamp
    run: UUID | None = None


RECORD_TYPES: dict[str, type[ExportRecord]] = {
    "memory": ExportedMemory,
    "memory_version": ExportedMemoryVersion,
    "edge": ExportedEdge,
    "anchor": ExportedAnchor,
    "summary": ExportedScopeSummary,
    "scope_name": ExportedScopeName,
    "project_setting": ExportedProjectSetting,
    "session": ExportedSession,
    "turn": ExportedTurn,
}


class RejectedLine(ResponseBody):
    """A rejected line and the reason. `file` is set if the import is an archive."""

    line: int
    reason: str
    file: str | None = None


class ImportResponse(ResponseBody):
    """The result of an import, or of its dry run. `rejected_lines` lists at most 100 lines."""

    created: int = 0
    updated: int = 0
    skipped: int = 0
    forgotten: int = 0
    rejected: int = 0
    rejected_lines: list[RejectedLine] = Field(default_factory=list)
    dry_run: bool = False

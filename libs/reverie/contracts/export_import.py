"""Records of an export file, and the response of an import.

The first line is an `ExportHeader`; every other line is a record with a `type`. A record has the
fields that are listed here and no other: an import checks and stores nothing else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

from reverie.contracts.base import (
    Name,
    NonBlankStr,
    RepoPath,
    ResponseBody,
    Timestamp,
    UnitInterval,
)
from reverie.contracts.context import ContextBudgetsUpdate
from reverie.contracts.dreams import DreamLimitsUpdate, LlmBudgetUpdate
from reverie.contracts.memories.git import FileStatus
from reverie.contracts.memories.memories import LineRange, SymbolLocation
from reverie.contracts.memories.typed_memories import MAX_CLAIM_SECONDS
from reverie.contracts.projects import LinkProjectsRequest

EXPORT_FORMAT = "reverie"
EXPORT_VERSION = 1
MAX_COUNT = 1_000_000_000
"""The highest imported count or version: the store goes on counting from it."""
MAX_KEY_BYTES = 2000
"""A longer key does not fit into an index of the store."""
_TIMESTAMP = TypeAdapter[datetime](Timestamp)
_TIMESTAMP_TEXT = re.compile(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
_CLOCK_DIFFERENCE = timedelta(days=1)


def _reject_future(value: datetime) -> datetime:
    if value > datetime.now(UTC) + _CLOCK_DIFFERENCE:
        raise ValueError("lies in the future")
    return value


def _replace_future(value: datetime) -> datetime:
    return min(value, datetime.now(UTC))


def _check_key_size(key: str) -> str:
    if len(key.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"holds more than {MAX_KEY_BYTES} bytes")
    return key


def _check_timestamp(text: str) -> str:
    if not _TIMESTAMP_TEXT.fullmatch(text):
        raise ValueError("is no date and time, as 2026-01-31T10:00:00Z")
    value, now = _TIMESTAMP.validate_python(text), datetime.now(UTC)
    return text if value <= now else now.isoformat()


def _limit_claim(value: datetime) -> datetime:
    """A claim lasts no longer than one that is made now may."""
    return min(value, datetime.now(UTC) + timedelta(seconds=MAX_CLAIM_SECONDS))


def _format_timestamp(value: datetime) -> str:
    """Formats a time as Postgres does in JSON."""
    text, _, offset = value.astimezone(UTC).isoformat().rpartition("+")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}+{offset}"


Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
ExportedTimestamp = Annotated[Timestamp, PlainSerializer(_format_timestamp, str, "json")]
PastTimestamp = Annotated[ExportedTimestamp, AfterValidator(_reject_future)]
"""A time at which something has happened; clocks may differ by a day."""
GitTimestamp = Annotated[ExportedTimestamp, AfterValidator(_replace_future)]
"""A time of a commit. A later one is a wrong clock's, and is read as now."""
ExportedSha = Annotated[
    str, StringConstraints(max_length=400, pattern=r"^([0-9a-f]{7,64}|.*\[REDACTED_.*)$")
]
"""A commit or a blob; or what redaction left of it."""
TimestampText = Annotated[str, AfterValidator(_check_timestamp)]
"""A time in a repository, kept as it was written. A later one than now is read as now."""
StoredName = Annotated[NonBlankStr, StringConstraints(max_length=400)]
"""A name or tag: redaction may have made it longer."""
StoredKey = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_key_size)]
MarkStep = Annotated[
    str, StringConstraints(pattern=r"^(-[a-z_]{1,40}->|<-[a-z_]{1,40}-|[0-9a-f-]{36}|…)$")
]
"""A step of the path by which doubt spread: an arrow, or a memory."""
MessageRole = Literal["user", "assistant", "tool", "system"]
TierName = Literal["hot", "warm", "cold"]


class ExportRecord(BaseModel):
    """A record on one line, or a part of one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class ExportHeader(ExportRecord):
    """The first line."""

    type: Literal["header"]
    format: Literal["reverie"]
    version: Literal[1]


class ExportedGit(ExportRecord):
    """The location of a memory in a repository, as `GitLocation`; texts may be redacted."""

    branch: StoredName | None = None
    commit: ExportedSha | None = None
    files: list[RepoPath] = Field(default_factory=list)
    committed_at: TimestampText | None = None
    lines: dict[RepoPath, list[LineRange]] = Field(default_factory=dict)
    symbols: dict[RepoPath, list[SymbolLocation]] = Field(default_factory=dict)
    blobs: dict[RepoPath, ExportedSha] = Field(default_factory=dict)
    modified_at: dict[RepoPath, TimestampText] = Field(default_factory=dict)


class ExportedUtterances(ExportRecord):
    """How often a session stated a memory. The nil UUID means no session."""

    session: UUID
    times: Count
    first: PastTimestamp
    last: PastTimestamp


class ExportedUsage(ExportRecord):
    """How readers used a memory, now and at the beginning of the hour."""

    count: Count
    last: PastTimestamp | None = None
    boost: UnitInterval
    hour: PastTimestamp | None = None
    last_at_hour_start: PastTimestamp | None = None
    boost_at_hour_start: UnitInterval = 0


class ExportedTaskState(ExportRecord):
    """The state of a task, and its current claim."""

    state: Literal["todo", "doing", "blocked", "done"]
    claimed_by: StoredName | None = None
    claimed_until: Annotated[ExportedTimestamp, AfterValidator(_limit_claim)] | None = None
    updated: PastTimestamp | None = None

    @model_validator(mode="after")
    def _check_claim(self) -> Self:
        if (self.claimed_by is None) is not (self.claimed_until is None):
            raise ValueError("a claim has both claimed_by and claimed_until")
        return self


class ExportedStaleMark(ExportRecord):
    """A code change that made a memory stale. Without `origin` it is the memory's own."""

    commit: ExportedSha
    path: RepoPath
    origin: UUID | None = None
    node: UUID | None = None
    via: list[MarkStep] = Field(default_factory=list, max_length=100)
    grade: Literal["suspect", "stale", "gone"]
    score: UnitInterval
    change: FileStatus
    lines: list[LineRange] = Field(default_factory=list)
    subject: Annotated[str, StringConstraints(max_length=4000)]
    committed_at: GitTimestamp
    event: UUID
    created: PastTimestamp
    cleared: PastTimestamp | None = None


class ExportedState(ExportRecord):
    """The columns that a memory and its earlier versions share."""

    key: StoredKey | None = None
    summary: str | None = None
    session: UUID | None = None
    agent: StoredName | None = None
    actor: StoredName | None = None
    git: ExportedGit | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    valid_from: ExportedTimestamp | None = None
    valid_to: ExportedTimestamp | None = None
    superseded_by: UUID | None = None
    merged_into: UUID | None = None
    confirmed: PastTimestamp | None = None
    checked: PastTimestamp | None = None
    tags: list[StoredName] = Field(default_factory=list, max_length=500)


class ExportedMemory(ExportedState):
    """A memory with the data that belongs only to it.

    `settled` means that the file contains its anchors and edges, and that duplicate detection has
    processed it.
    """

    id: UUID
    scope: NonBlankStr
    kind: Name
    tier: TierName
    status: Literal["active", "superseded", "archived"]
    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    content: Annotated[str, Field(min_length=1)]
    confidence: UnitInterval
    pinned: bool
    source: Name
    created: PastTimestamp
    updated: PastTimestamp
    known_from: PastTimestamp | None = None
    settled: bool = False
    turns: list[UUID] = Field(default_factory=list)
    utterances: list[ExportedUtterances] = Field(default_factory=list)
    usage: ExportedUsage | None = None
    task: ExportedTaskState | None = None
    stale: list[ExportedStaleMark] = Field(default_factory=list)


class ExportedVersionState(ExportedState):
    """The fields of an earlier version other than its content and status."""

    scope: NonBlankStr | None = None
    kind: Name | None = None
    tier: TierName | None = None
    confidence: UnitInterval | None = None
    pinned: bool | None = None
    source: Name | None = None
    created: PastTimestamp | None = None
    updated: PastTimestamp | None = None
    task: ExportedTaskState | None = None


class ExportedMemoryVersion(ExportRecord):
    """An earlier version of a memory; `actor` ended it, for that `reason`."""

    memory: UUID
    version: Count
    content: str
    status: Literal["active", "superseded", "archived", "deleted"]
    reason: str
    actor: StoredName | None = None
    state: ExportedVersionState = Field(default_factory=ExportedVersionState)
    known_from: PastTimestamp
    known_to: PastTimestamp


class ExportedEdge(ExportRecord):
    """An edge. A closed edge has a `known_to`."""

    id: UUID
    src: UUID
    kind: Name
    dst: UUID
    weight: UnitInterval
    meta: dict[str, Any] = Field(default_factory=dict)
    known_from: PastTimestamp
    known_to: PastTimestamp | None = None
    actor: StoredName | None = None
    closed_by: StoredName | None = None


class ExportedAnchor(ExportRecord):
    """The path of a file node; `name` is its last part."""

    node: UUID
    project: Name
    path: RepoPath
    name: NonBlankStr


class ExportedPicture(ExportRecord):
    """A picture of a memory; `data` in base64. An import takes the type from the bytes."""

    memory: UUID
    created: PastTimestamp
    media_type: str | None = None
    data: NonBlankStr


class ExportedScopeSummary(ExportRecord):
    """The summary of a scope."""

    scope: NonBlankStr
    version: Count
    content: str
    tokens: Count
    updated: PastTimestamp


class ExportedScopeName(ExportRecord):
    """The original name of a scope whose last segment is a slug."""

    scope: NonBlankStr
    name: Name


class ExportedProjectSetting(ExportRecord):
    """Budgets, dream thresholds, or half of a link, of a project; of the tenant if that is `*`."""

    project: Name
    name: Annotated[str, Field(pattern=r"^(context|dream|llm|link/[a-z0-9][a-z0-9_-]{0,63})$")]
    value: ContextBudgetsUpdate | DreamLimitsUpdate | LlmBudgetUpdate | LinkProjectsRequest
    updated: PastTimestamp


class ExportedSession(ExportRecord):
    """A session. An import counts its turns itself, and keeps of `new_*` what these allow."""

    id: UUID
    agent: StoredName
    scope: NonBlankStr
    started: PastTimestamp
    appended: PastTimestamp
    ended: PastTimestamp | None = None
    external_id: StoredName | None = None
    user_name: StoredName | None = None
    project: StoredName | None = None
    branch: StoredName | None = None
    group_name: StoredName | None = None
    summary: str | None = None
    turns: Count = 0
    pending: Count = 0
    pending_segments: Count = 0
    pending_chars: Count = 0
    new_turns: Count = 0
    new_segments: Count = 0
    new_chars: Count = 0
    new_since: PastTimestamp | None = None


class ExportedTurn(ExportRecord):
    """A turn of a session. `run` is the dream that digested it, `output` what a tool gave."""

    id: UUID
    session: UUID
    ordinal: Count
    role: MessageRole
    content: str
    at: ExportedTimestamp
    tool: StoredName | None = None
    external_id: StoredName | None = None
    run: UUID | None = None
    output: str | None = None


RECORD_TYPES: dict[str, type[ExportRecord]] = {
    "memory": ExportedMemory,
    "memory_version": ExportedMemoryVersion,
    "edge": ExportedEdge,
    "anchor": ExportedAnchor,
    "picture": ExportedPicture,
    "summary": ExportedScopeSummary,
    "scope_name": ExportedScopeName,
    "project_setting": ExportedProjectSetting,
    "session": ExportedSession,
    "turn": ExportedTurn,
}


class RejectedLine(ResponseBody):
    """A line that conflicts with the store, and the reason. `file`: its file in an archive."""

    line: int
    reason: str
    file: str | None = None


class ImportResponse(ResponseBody):
    """The result of an import, or of its dry run. `rejected_lines` lists at most 100 lines.

    `redactions` counts the secrets that were replaced.
    """

    created: int = 0
    updated: int = 0
    skipped: int = 0
    forgotten: int = 0
    rejected: int = 0
    redactions: int = 0
    rejected_lines: list[RejectedLine] = Field(default_factory=list)
    dry_run: bool = False

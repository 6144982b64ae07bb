"""The lines of an export, and what an import answers.

The first line is `Header`; each other one a record with its `type`. What a record holds beyond
these fields is carried as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from reverie.contracts.base import Answer, Moment, Name, RepoPath, Tag, Text, Unit
from reverie.contracts.context import SetBudgets
from reverie.contracts.dreams import SetLimits, SetLlm

FORMAT = "reverie"
VERSION = 1

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Role = Literal["user", "assistant", "tool", "system"]


class Record(BaseModel):
    """A line. Unknown fields pass: a later version may have more columns."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Header(Record):
    """The first line."""

    type: Literal["header"]
    format: Literal["reverie"]
    version: Literal[1]


class SaidLine(Record):
    """How often a memory was said in a session; the nil session stands for none."""

    session: UUID
    times: Count
    first: Moment
    last: Moment


class UsedLine(Record):
    """How readers used a memory."""

    count: Count
    last: Moment | None = None
    boost: Unit


class TaskLine(Record):
    """Where a task stands and who has it."""

    state: Literal["todo", "doing", "blocked", "done"]
    claimed_by: str | None = None
    claimed_until: Moment | None = None


class StaleLine(Record):
    """A change of the code that made a memory doubtful."""

    commit: Name
    path: RepoPath
    grade: Literal["suspect", "stale", "gone"]
    score: Unit
    change: str
    subject: str
    committed_at: Moment
    event: UUID
    created: Moment
    cleared: Moment | None = None


class MemoryLine(Record):
    """A memory as it stands, and what belongs to it alone.

    `settled`: its anchors and edges stand in the file, and it was compared with its like.
    """

    id: UUID
    scope: Text
    kind: Name
    tier: Literal["hot", "warm", "cold"]
    status: Literal["active", "superseded", "archived"]
    version: Annotated[int, Field(ge=1, le=2**31 - 2)]
    content: Annotated[str, Field(min_length=1)]
    confidence: Unit
    pinned: bool
    source: Name
    created: Moment
    updated: Moment
    key: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    summary: str | None = None
    session: UUID | None = None
    agent: str | None = None
    git: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    superseded_by: UUID | None = None
    merged_into: UUID | None = None
    settled: bool = False
    tags: list[Tag] = Field(default_factory=list, max_length=500)
    turns: list[UUID] = Field(default_factory=list)
    said: list[SaidLine] = Field(default_factory=list)
    used: UsedLine | None = None
    task: TaskLine | None = None
    stale: list[StaleLine] = Field(default_factory=list)


class VersionLine(Record):
    """A memory as it was before a change."""

    memory: UUID
    version: Count
    content: str
    why: str
    state: dict[str, Any] = Field(default_factory=dict)
    known_from: Moment
    known_to: Moment


class EdgeLine(Record):
    """An edge; closed where it has a `known_to`."""

    id: UUID
    src: UUID
    kind: Name
    dst: UUID
    weight: Unit
    meta: dict[str, Any] = Field(default_factory=dict)
    known_from: Moment
    known_to: Moment | None = None


class AnchorLine(Record):
    """The path of a file node."""

    node: UUID
    project: Name
    path: RepoPath
    name: Text


class SummaryLine(Record):
    """The summary of a scope."""

    scope: Text
    version: Count
    content: str
    tokens: Count
    updated: Moment


class NameLine(Record):
    """What people call a scope whose last part is the slug of another name."""

    scope: Text
    name: Name


class SettingLine(Record):
    """What a project has set, or with `*` the tenant: the budgets of its context block, when it
    dreams, what it may ask of a language model."""

    project: Name
    name: Literal["context", "dream", "llm"]
    value: SetBudgets | SetLimits | SetLlm
    updated: Moment


class SessionLine(Record):
    """A session."""

    id: UUID
    agent: Name
    scope: Text
    started: Moment
    appended: Moment
    ended: Moment | None = None
    external_id: str | None = None


class TurnLine(Record):
    """A turn of a session."""

    id: UUID
    session: UUID
    ord: Count
    role: Role
    content: str
    at: Moment
    run: UUID | None = None


LINES: dict[str, type[Record]] = {
    "memory": MemoryLine,
    "memory_version": VersionLine,
    "edge": EdgeLine,
    "anchor": AnchorLine,
    "summary": SummaryLine,
    "scope_name": NameLine,
    "project_setting": SettingLine,
    "session": SessionLine,
    "turn": TurnLine,
}


class Refused(Answer):
    """A line that was not taken, and why. `file` is told where an archive has several."""

    line: int
    reason: str
    file: str | None = None


class Imported(Answer):
    """What an import did, or would do. `refused_lines` names the first hundred."""

    created: int = 0
    updated: int = 0
    skipped: int = 0
    forgotten: int = 0
    refused: int = 0
    refused_lines: list[Refused] = Field(default_factory=list)
    dry_run: bool = False

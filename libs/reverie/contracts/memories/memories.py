"""Bodies of writing, reading and listing memories, and their construction from domain values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, StringConstraints

from reverie.contracts.base import (
    LineNumber,
    Name,
    NonBlankStr,
    PageResponse,
    Problem,
    RepoPath,
    RequestBody,
    ResponseBody,
    Tag,
    Timestamp,
    UnitInterval,
)
from reverie.domain.core.confidence import DEFAULT_DECAY, DecayPolicy, current_confidence
from reverie.domain.core.ids import short_id
from reverie.domain.core.kinds import Tier
from reverie.domain.core.memory import Memory
from reverie.domain.text.index_terms import get_request


def _validate_line_range(line_range: tuple[int, int]) -> tuple[int, int]:
    if line_range[1] < line_range[0]:
        raise ValueError("the last line lies before the first")
    return line_range


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
PastTimestamp = Annotated[Timestamp, AfterValidator(lambda at: min(at, datetime.now(UTC)))]
"""A time that has come. A later one is a wrong clock's, and is read as now."""
LineRange = Annotated[tuple[LineNumber, LineNumber], AfterValidator(_validate_line_range)]


class SymbolLocation(RequestBody):
    """A definition in a file: its unqualified name, its first line and its last line."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    lines: LineRange


class GitLocation(RequestBody):
    """The location of a memory in a repository. `lines` maps a path to [first, last] pairs.

    `symbols` maps a path to the definitions that the memory refers to. `blobs` maps a path to git's
    blob id. All three refer to `commit`, created at `committed_at`. `modified_at` maps a path to
    the time when the session wrote the file.
    """

    branch: Name | None = None
    commit: Sha | None = None
    files: list[RepoPath] = Field(default_factory=list, max_length=200)
    committed_at: PastTimestamp | None = None
    lines: dict[RepoPath, list[LineRange]] = Field(default_factory=dict, max_length=200)
    symbols: dict[RepoPath, Annotated[list[SymbolLocation], Field(max_length=50)]] = Field(
        default_factory=dict, max_length=200
    )
    blobs: dict[RepoPath, Sha] = Field(default_factory=dict, max_length=200)
    modified_at: dict[RepoPath, PastTimestamp] = Field(default_factory=dict, max_length=200)


class RememberEdge(RequestBody):
    """An edge from the memory being written."""

    to: UUID
    type: str
    weight: UnitInterval = 1.0
    metadata: dict[str, Any] = Field(default_factory=dict)


class RememberRequest(RequestBody):
    """`POST /v1/remember`. Without `kind`, rules classify. Without `scope`, the key's default
    applies.

    `steps` create a skill with `content` as its title; the stored content lists the steps. `soft`
    supersedes the memory under `key` as a minor correction, without a `supersede_reason`. A memory
    that is given a `tier` stays in it; dreams move others by their use.
    """

    content: NonBlankStr
    kind: Name | None = None
    scope: NonBlankStr | None = None
    key: Name | None = None
    supersede_reason: NonBlankStr | None = None
    soft: bool = False
    tags: list[Tag] = Field(default_factory=list, max_length=50)
    session: UUID | None = None
    edges: list[RememberEdge] = Field(default_factory=list, max_length=50)
    confidence: UnitInterval = 0.8
    tier: Tier | None = None
    pinned: bool = False
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    git: GitLocation | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    summary: NonBlankStr | None = None
    steps: list[NonBlankStr] = Field(default_factory=list, max_length=100)


class RememberBatchRequest(RequestBody):
    """`POST /v1/remember/batch`.

    1 to 500 items. Each is validated separately. All valid items are stored in one transaction.
    """

    items: list[dict[str, Any]] = Field(min_length=1, max_length=500)


class RememberConflict(ResponseBody):
    """An active memory of the scope that the new one contradicts, and why."""

    id: UUID
    content: str
    reason: str


class RememberResponse(ResponseBody):
    """The result of a write. `redactions` counts the secrets that were replaced.

    `conflicts` lists active memories that a single new memory contradicts, as far as their words
    tell. An agent should ask its user which of them holds.
    """

    id: UUID
    status: Literal["created", "duplicate", "superseded"]
    version: int
    redactions: int = 0
    hints: list[str] = Field(default_factory=list)
    conflicts: list[RememberConflict] = Field(default_factory=list)


class RememberBatchResponse(ResponseBody):
    """The results in the order of the items. Each is a response or a problem."""

    items: list[RememberResponse | Problem]


class Provenance(ResponseBody):
    """The origin of a memory.

    `asked`: the request that a decision record answers. Recall leaves it out.
    """

    source: str
    session: UUID | None = None
    agent: str | None = None
    turns: list[UUID] = Field(default_factory=list)
    git: dict[str, Any] | None = None
    asked: str | None = None


EdgeWeight = Annotated[float, AfterValidator(lambda weight: round(weight, 6))]
"""Rounded to the given value, because the store has single precision."""


class EdgeBody(ResponseBody):
    """An edge between two memories."""

    id: UUID | None = None
    source: UUID = Field(serialization_alias="from", validation_alias="from")
    target: UUID = Field(serialization_alias="to", validation_alias="to")
    type: str
    weight: EdgeWeight = 1.0

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class MemoryBody(ResponseBody):
    """A memory as `GET /v1/memories` shows it.

    `confidence` is `base_confidence` after decay over time and reinforcement by use.
    """

    id: UUID
    short_id: str
    scope: str
    kind: str
    content: str
    key: str | None = None
    summary: str | None = None
    tags: list[str] = Field(default_factory=list)
    tier: str
    confidence: float
    base_confidence: float
    pinned: bool
    status: str
    version: int
    staleness: float = 0.0
    stale_grade: str | None = None
    provenance: Provenance
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: AwareDatetime
    updated_at: AwareDatetime
    accessed_at: AwareDatetime | None = None
    access_count: int = 0
    valid_from: AwareDatetime | None = None
    valid_to: AwareDatetime | None = None


class NeighbourBody(ResponseBody):
    """A memory one edge away. `direction` is relative to the requested memory."""

    id: UUID
    kind: str
    label: str
    type: str
    direction: Literal["out", "in"]
    weight: EdgeWeight = 1.0


class TaskStateBody(ResponseBody):
    """The state of a task.

    `depends_on` lists tasks that must be done before it. It contains only tasks that the key may
    read.
    """

    state: Literal["todo", "doing", "blocked", "done"]
    claimed_by: str | None = None
    claimed_until: AwareDatetime | None = None
    depends_on: list[UUID] = Field(default_factory=list)
    claimable: bool = False


class MemoryDetail(MemoryBody):
    """`GET /v1/memories/{id}`: the memory with its neighbours.

    `merged_from` is the requested id if that memory was merged into this one.
    """

    merged_from: UUID | None = None
    neighbours: list[NeighbourBody] = Field(default_factory=list)
    task: TaskStateBody | None = None


class MemoryPage(PageResponse):
    """`GET /v1/memories`, newest first."""

    items: list[MemoryBody]


def build_provenance(memory: Memory, request: str | None = None) -> Provenance:
    """The origin of a memory, with the `request` if it is to be returned."""
    return Provenance(
        source=memory.source,
        session=memory.session,
        agent=memory.agent,
        turns=list(memory.turns),
        git=memory.git,
        asked=request,
    )


def build_memory_body(
    memory: Memory, decay: DecayPolicy = DEFAULT_DECAY, now: datetime | None = None
) -> MemoryBody:
    """A memory as lists show it, with its confidence at `now`. The default is the current time."""
    return MemoryBody(
        id=memory.id,
        short_id=short_id(memory.id),
        scope=memory.scope,
        kind=memory.kind.value,
        content=memory.content,
        key=memory.key,
        summary=memory.summary,
        tags=list(memory.tags),
        tier=memory.tier.value,
        confidence=round(current_confidence(memory, now or datetime.now(UTC), decay), 4),
        base_confidence=memory.confidence,
        pinned=memory.pinned,
        status=memory.status.value,
        version=memory.version,
        staleness=memory.staleness,
        stale_grade=memory.stale_grade,
        provenance=build_provenance(memory, get_request(memory.metadata)),
        metadata=memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        accessed_at=memory.use.last,
        access_count=memory.use.count,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
    )

"""Bodies of memories: remember, read, list."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, StringConstraints

from reverie.contracts.base import (
    Answer,
    LineNo,
    Moment,
    Name,
    Page,
    Problem,
    RepoPath,
    Request,
    Tag,
    Text,
    Unit,
)


def _in_order(span: tuple[int, int]) -> tuple[int, int]:
    if span[1] < span[0]:
        raise ValueError("the last line lies before the first")
    return span


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
Span = Annotated[tuple[LineNo, LineNo], AfterValidator(_in_order)]


class Symbol(Request):
    """A definition in a file: its plain name, and its first and last line."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    lines: Span


class GitPlace(Request):
    """Where in a repository a memory was learned. `lines` maps a path to [first, last] pairs.

    `symbols` maps a path to the definitions that the memory speaks of, `blobs` to git's name of
    the content; all as they stand at `commit`, which was made at `committed_at`. `wrote`: the files
    that the work it comes from had written by then, each with when.
    """

    branch: Name | None = None
    commit: Sha | None = None
    files: list[RepoPath] = Field(default_factory=list, max_length=200)
    committed_at: Moment | None = None
    lines: dict[RepoPath, list[Span]] = Field(default_factory=dict, max_length=200)
    symbols: dict[RepoPath, Annotated[list[Symbol], Field(max_length=50)]] = Field(
        default_factory=dict, max_length=200
    )
    blobs: dict[RepoPath, Sha] = Field(default_factory=dict, max_length=200)
    wrote: dict[RepoPath, Moment] = Field(default_factory=dict, max_length=200)


class EdgeTo(Request):
    """An edge from the memory being written."""

    to: UUID
    type: str
    weight: Unit = 1.0
    metadata: dict[str, Any] = Field(default_factory=dict)


class Remember(Request):
    """`POST /v1/remember`. Without a kind, rules classify; without a scope, the key's default.

    `steps` make a skill, whose title is the content; the content that is kept lists them.

    `soft` supersedes what stands under the key as a minor correction, with no reason needed.
    """

    content: Text
    kind: Name | None = None
    scope: Text | None = None
    key: Name | None = None
    supersede_reason: Text | None = None
    soft: bool = False
    tags: list[Tag] = Field(default_factory=list, max_length=50)
    session: UUID | None = None
    edges: list[EdgeTo] = Field(default_factory=list, max_length=50)
    confidence: Unit = 0.8
    pinned: bool = False
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    git: GitPlace | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    summary: Text | None = None
    steps: list[Text] = Field(default_factory=list, max_length=100)


class RememberBatch(Request):
    """`POST /v1/remember/batch`: each item is judged by itself; all that pass land together."""

    items: list[dict[str, Any]] = Field(min_length=1, max_length=500)


class Remembered(Answer):
    """What a write did. `redactions` counts secrets that were replaced."""

    id: UUID
    status: Literal["created", "duplicate", "superseded"]
    version: int
    redactions: int = 0
    hints: list[str] = Field(default_factory=list)


class RememberedBatch(Answer):
    """The answers in the order of the items: each its answer or its problem."""

    items: list[Remembered | Problem]


class Provenance(Answer):
    """Where a memory came from."""

    source: str
    session: UUID | None = None
    agent: str | None = None
    turns: list[UUID] = Field(default_factory=list)
    git: dict[str, Any] | None = None


Weight = Annotated[float, AfterValidator(lambda weight: round(weight, 6))]
"""As it was given: the store keeps single precision."""


class Edge(Answer):
    """An edge between two memories."""

    id: UUID | None = None
    source: UUID = Field(serialization_alias="from", validation_alias="from")
    target: UUID = Field(serialization_alias="to", validation_alias="to")
    type: str
    weight: Weight = 1.0

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class MemoryBody(Answer):
    """A memory as `GET /v1/memories` shows it.

    `confidence` is what time and use left of `base_confidence` by now.
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


class Neighbour(Answer):
    """A memory one edge away; `direction` is seen from the memory asked for."""

    id: UUID
    kind: str
    label: str
    type: str
    direction: Literal["out", "in"]
    weight: Weight = 1.0


class TaskState(Answer):
    """Where a task stands. `waits_for`: tasks to be done before it, as far as the key may read."""

    state: Literal["todo", "doing", "blocked", "done"]
    claimed_by: str | None = None
    claimed_until: AwareDatetime | None = None
    waits_for: list[UUID] = Field(default_factory=list)
    claimable: bool = False


class MemoryDetail(MemoryBody):
    """`GET /v1/memories/{id}`: the memory with its neighbours.

    `merged_from`: the id that was asked for, where that memory went into this one.
    """

    merged_from: UUID | None = None
    neighbours: list[Neighbour] = Field(default_factory=list)
    task: TaskState | None = None


class MemoryPage(Page):
    """`GET /v1/memories`, newest first."""

    items: list[MemoryBody]

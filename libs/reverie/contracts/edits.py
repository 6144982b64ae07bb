"""Bodies of changes to a memory: edit, rollback, feedback, history and provenance."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import (
    Name,
    NonBlankStr,
    PageResponse,
    RequestBody,
    ResponseBody,
    Tag,
    Timestamp,
    UnitInterval,
)


class EditMemoryRequest(RequestBody):
    """`PATCH /v1/memories/{id}`: what is given is changed, what is left out stays.

    An empty `summary` removes it. `reason` is kept with the version.
    """

    content: NonBlankStr | None = None
    summary: str | None = None
    kind: Name | None = None
    tags: Annotated[list[Tag], Field(max_length=50)] | None = None
    confidence: UnitInterval | None = None
    pinned: bool | None = None
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    metadata: dict[str, Any] | None = None
    reason: NonBlankStr | None = None


class RollbackRequest(RequestBody):
    """`POST /v1/memories/{id}/rollback`: back to what `version` was, as a new version."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    reason: NonBlankStr | None = None


class FeedbackRequest(RequestBody):
    """`POST /v1/memories/{id}/feedback`: approve makes it certain, edit rewrites it, discard
    forgets it."""

    verdict: Literal["approve", "edit", "discard"]
    content: NonBlankStr | None = None
    reason: NonBlankStr | None = None


class MemoryChangeResponse(ResponseBody):
    """The version that stands after a change; `changed` is false where it was so already."""

    id: UUID
    version: int
    changed: bool
    redactions: int = 0
    hints: list[str] = Field(default_factory=list)


class ConfirmMemoryResponse(ResponseBody):
    """`POST /v1/memories/{id}/confirm`: it holds as the code stands. `cleared` counts the reasons
    for doubt that are none any more."""

    id: UUID
    version: int
    cleared: int


class MemoryVersionBody(ResponseBody):
    """What a memory was from `known_from` to `known_to` (null: it still is); by whom, why."""

    version: int
    content: str
    status: str
    kind: str | None = None
    key: str | None = None
    tags: list[str] = Field(default_factory=list)
    actor: str | None = None
    reason: str | None = None
    known_from: AwareDatetime
    known_to: AwareDatetime | None = None


class MemoryHistoryPage(PageResponse):
    """`GET /v1/memories/{id}/history`, newest first."""

    items: list[MemoryVersionBody]


class SourceSessionBody(ResponseBody):
    """The session in which a memory was learned."""

    id: UUID
    agent: str
    external_id: str | None = None
    project: str | None = None
    branch: str | None = None
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None


class SourceTurnBody(ResponseBody):
    """A turn that a memory was made of."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: AwareDatetime


class ReplacedMemoryBody(ResponseBody):
    """A memory that this one replaced, `step` steps back."""

    id: UUID
    version: int
    content: str
    agent: str | None = None
    created_at: AwareDatetime
    step: int


class MemoryProvenanceResponse(ResponseBody):
    """`GET /v1/memories/{id}/provenance`. Turns are shown to the agent whose they are.

    `promoted`: the branch that it was of, the commit that merged it, and the dream (`run`) that let
    it hold for the project.
    """

    id: UUID
    source: str
    agent: str | None = None
    session: SourceSessionBody | None = None
    turns: list[SourceTurnBody] = Field(default_factory=list)
    git: dict[str, Any] | None = None
    promoted: dict[str, Any] | None = None
    replaced: list[ReplacedMemoryBody] = Field(default_factory=list)

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
from reverie.domain.core.kinds import Tier

MAX_FORGOTTEN = 200
"""The most memories that one call forgets."""

VisibleStatus = Literal["active", "superseded", "archived"]


class EditMemoryRequest(RequestBody):
    """`PATCH /v1/memories/{id}`. An omitted field stays unchanged.

    An empty `summary` removes the summary. `reason` is stored with the version. A memory that is
    given a `tier` stays in it; dreams move others by their use.
    """

    content: NonBlankStr | None = None
    summary: str | None = None
    kind: Name | None = None
    tags: Annotated[list[Tag], Field(max_length=50)] | None = None
    confidence: UnitInterval | None = None
    tier: Tier | None = None
    pinned: bool | None = None
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    metadata: dict[str, Any] | None = None
    reason: NonBlankStr | None = None


class RollbackRequest(RequestBody):
    """`POST /v1/memories/{id}/rollback`: restore `version` as a new version."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    reason: NonBlankStr | None = None


class FeedbackRequest(RequestBody):
    """`POST /v1/memories/{id}/feedback`.

    `approve` sets full confidence, `edit` replaces the content, and `discard` forgets the memory.
    """

    verdict: Literal["approve", "edit", "discard"]
    content: NonBlankStr | None = None
    reason: NonBlankStr | None = None


class MemoryChangeResponse(ResponseBody):
    """The version after a change. `changed` is false if the memory already had that state."""

    id: UUID
    version: int
    changed: bool
    redactions: int = 0
    hints: list[str] = Field(default_factory=list)


class ForgetMemoryResponse(MemoryChangeResponse):
    """`DELETE /v1/memories/{id}`: no answer has the memory any more.

    It can be restored until `restorable_until`; null: its text was erased at once.
    """

    restorable_until: AwareDatetime | None = None


class ForgetBatchRequest(RequestBody):
    """`POST /v1/memories/forget`: the memories that pass all that is given, at most 200.

    `ids` or `scope` must be given; ids may be short. Without `status`, of every status.
    """

    ids: Annotated[list[NonBlankStr], Field(min_length=1, max_length=MAX_FORGOTTEN)] | None = None
    scope: NonBlankStr | None = None
    keys: Annotated[list[Name], Field(min_length=1, max_length=MAX_FORGOTTEN)] | None = None
    tag: Tag | None = None
    status: Annotated[list[VisibleStatus], Field(min_length=1)] | None = None


class ForgetBatchResponse(ResponseBody):
    """`forgotten` counts the memories. `more`: others pass, so ask again.

    They can be restored until `restorable_until`; null: their texts were erased at once.
    """

    forgotten: int
    more: bool
    restorable_until: AwareDatetime | None = None


class RestoreMemoryResponse(ResponseBody):
    """`POST /v1/memories/{id}/restore`: the memory has the status that it had before."""

    id: UUID
    version: int
    status: str = "active"


class EraseMemoryRequest(RequestBody):
    """`POST /v1/memories/{id}/erase`. `reason` must not tell what is erased."""

    reason: NonBlankStr | None = None


class EraseMemoryResponse(ResponseBody):
    """The receipt of an erasure: the rows that were deleted or cleaned, by table.

    `still_quoted_in`: other memories that contain a statement of it; they are left as they are.
    Backups and archived logs of Postgres from before `in_backups_before` still hold the text.
    """

    id: UUID
    rows: dict[str, int]
    still_quoted_in: list[UUID] = Field(default_factory=list)
    in_backups_before: AwareDatetime


class ConfirmMemoryResponse(ResponseBody):
    """`POST /v1/memories/{id}/confirm`: the memory is still true. `cleared` counts the removed
    stale marks.
    """

    id: UUID
    version: int
    cleared: int


class MemoryVersionBody(ResponseBody):
    """A version of a memory, with the actor and the reason of the change.

    It was current from `known_from` to `known_to`. A null `known_to` marks the current version.
    """

    version: int
    content: str
    status: str
    kind: str | None = None
    tier: str | None = None
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
    """The session that a memory comes from."""

    id: UUID
    agent: str
    external_id: str | None = None
    project: str | None = None
    branch: str | None = None
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None


class SourceTurnBody(ResponseBody):
    """A turn that a memory was derived from."""

    id: UUID
    session: UUID
    ordinal: int
    role: str
    content: str
    at: AwareDatetime


class ReplacedMemoryBody(ResponseBody):
    """A predecessor of a memory, `step` replacements earlier."""

    id: UUID
    version: int
    content: str
    agent: str | None = None
    created_at: AwareDatetime
    step: int


class MemoryProvenanceResponse(ResponseBody):
    """`GET /v1/memories/{id}/provenance`.

    `turns` are shown only to the agent that they belong to. `promoted` holds the original branch,
    the merge commit, and the dream (`run`) that promoted the memory to the project. `asked`: the
    request that a decision record answers.
    """

    id: UUID
    source: str
    agent: str | None = None
    asked: str | None = None
    session: SourceSessionBody | None = None
    turns: list[SourceTurnBody] = Field(default_factory=list)
    git: dict[str, Any] | None = None
    promoted: dict[str, Any] | None = None
    replaced: list[ReplacedMemoryBody] = Field(default_factory=list)

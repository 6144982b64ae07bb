"""Bodies of tasks, skills and facts, the kinds of memory that have routes of their own."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, Strict

from reverie.contracts.base import Name, NonBlankStr, PageResponse, RequestBody, ResponseBody
from reverie.contracts.memories import MemoryBody, RememberResponse, TaskStateBody

TaskStatus = Literal["todo", "doing", "blocked", "done"]
MAX_CLAIM_SECONDS = 86_400


class MoveTaskRequest(RequestBody):
    """`PATCH /v1/tasks/{id}`. Without an agent, the key's."""

    state: TaskStatus
    agent: Name | None = None


class ClaimTaskRequest(RequestBody):
    """`POST /v1/tasks/{id}/claim`: for so many seconds nobody else may have it."""

    agent: Name | None = None
    seconds: Annotated[int, Field(ge=1, le=MAX_CLAIM_SECONDS)] = 900


class ReleaseTaskRequest(RequestBody):
    """`POST /v1/tasks/{id}/release`."""

    agent: Name | None = None


class TaskChangeResponse(ResponseBody):
    """Where the task stands now, and its version as a memory."""

    id: UUID
    version: int
    task: TaskStateBody


class TaskBody(MemoryBody):
    """A task as it is listed."""

    task: TaskStateBody


class TaskPage(PageResponse):
    """`GET /v1/tasks`, newest first."""

    items: list[TaskBody]


class SkillBody(ResponseBody):
    """A skill without its steps. `places`: the names in braces that a replay fills."""

    id: UUID
    short_id: str
    scope: str
    key: str | None = None
    title: str
    steps: int
    placeholders: list[str]
    tags: list[str]
    version: int
    created_at: AwareDatetime
    updated_at: AwareDatetime


class SkillPage(PageResponse):
    """`GET /v1/skills`: those that are active, the newest first."""

    items: list[SkillBody]


class SkillReplayResponse(ResponseBody):
    """`text` is the title and the numbered steps; `missing` names the places nothing filled."""

    id: UUID
    version: int
    title: str
    steps: list[str]
    text: str
    missing: list[str] = Field(default_factory=list)


ConfidenceLevel = Literal["high", "medium", "low"]


class AddFactRequest(RequestBody):
    """`POST /v1/facts`. `domains`: hosts or addresses of pages that say so."""

    topic: Name
    statement: NonBlankStr
    confidence: ConfidenceLevel
    domains: list[Name] = Field(default_factory=list, max_length=100)
    verified: Annotated[date, Strict(False)]
    kind: Literal["lesson", "reference"] = "lesson"
    scope: NonBlankStr | None = None
    session: UUID | None = None


class FactDetails(ResponseBody):
    """What is known of a claim. `corroborations` counts independent root domains."""

    topic: str
    statement: str
    confidence: ConfidenceLevel
    corroborations: int
    domains: list[str]
    verified: date


class AddFactResponse(RememberResponse):
    """What a claim did: created, superseded (an earlier verification of it), or duplicate."""

    key: str
    fact: FactDetails


class FactBody(MemoryBody):
    """A claim as it is listed."""

    fact: FactDetails


class FactPage(PageResponse):
    """`GET /v1/facts`, newest first."""

    items: list[FactBody]

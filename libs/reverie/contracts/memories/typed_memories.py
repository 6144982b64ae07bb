"""Bodies of tasks, skills and facts, the kinds of memory that have routes of their own."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, Strict

from reverie.contracts.base import Name, NonBlankStr, PageResponse, RequestBody, ResponseBody
from reverie.contracts.memories.memories import MemoryBody, RememberResponse, TaskStateBody

TaskStatus = Literal["todo", "doing", "blocked", "done"]
MAX_CLAIM_SECONDS = 86_400


class MoveTaskRequest(RequestBody):
    """`PATCH /v1/tasks/{id}`. The default `agent` is that of the key."""

    state: TaskStatus
    agent: Name | None = None


class ClaimTaskRequest(RequestBody):
    """`POST /v1/tasks/{id}/claim`. No other agent can claim the task for `seconds`."""

    agent: Name | None = None
    seconds: Annotated[int, Field(ge=1, le=MAX_CLAIM_SECONDS)] = 900


class ReleaseTaskRequest(RequestBody):
    """`POST /v1/tasks/{id}/release`."""

    agent: Name | None = None


class TaskChangeResponse(ResponseBody):
    """The state of the task after the change, and the version of its memory."""

    id: UUID
    version: int
    task: TaskStateBody


class TaskBody(MemoryBody):
    """A task in a list."""

    task: TaskStateBody


class TaskPage(PageResponse):
    """`GET /v1/tasks`, newest first."""

    items: list[TaskBody]


class SkillBody(ResponseBody):
    """A skill without its steps. `placeholders` are the names in braces that a replay fills."""

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
    """`GET /v1/skills`: active skills, newest first."""

    items: list[SkillBody]


class SkillReplayResponse(ResponseBody):
    """`text` is the title and the numbered steps. `missing` names placeholders without a value."""

    id: UUID
    version: int
    title: str
    steps: list[str]
    text: str
    missing: list[str] = Field(default_factory=list)


ConfidenceLevel = Literal["high", "medium", "low"]


class AddFactRequest(RequestBody):
    """`POST /v1/facts`. `domains` are hosts or addresses of pages that support the statement."""

    topic: Name
    statement: NonBlankStr
    confidence: ConfidenceLevel
    domains: list[Name] = Field(default_factory=list, max_length=100)
    verified: Annotated[date, Strict(False)]
    kind: Literal["lesson", "reference"] = "lesson"
    scope: NonBlankStr | None = None
    session: UUID | None = None


class FactDetails(ResponseBody):
    """The details of a fact. `corroborations` counts independent root domains."""

    topic: str
    statement: str
    confidence: ConfidenceLevel
    corroborations: int
    domains: list[str]
    verified: date


class AddFactResponse(RememberResponse):
    """The result of adding a fact. `superseded` means that it replaced an earlier verification."""

    key: str
    fact: FactDetails


class FactBody(MemoryBody):
    """A fact in a list."""

    fact: FactDetails


class FactPage(PageResponse):
    """`GET /v1/facts`, newest first."""

    items: list[FactBody]

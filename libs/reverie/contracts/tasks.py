"""Bodies of tasks: where they stand, who has them."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Answer, Name, Page, Request
from reverie.contracts.memories import MemoryBody, TaskState

State = Literal["todo", "doing", "blocked", "done"]
LONGEST_CLAIM = 86_400


class MoveTask(Request):
    """`PATCH /v1/tasks/{id}`. Without an agent, the key's."""

    state: State
    agent: Name | None = None


class ClaimTask(Request):
    """`POST /v1/tasks/{id}/claim`: for so many seconds nobody else may have it."""

    agent: Name | None = None
    seconds: Annotated[int, Field(ge=1, le=LONGEST_CLAIM)] = 900


class ReleaseTask(Request):
    """`POST /v1/tasks/{id}/release`."""

    agent: Name | None = None


class TaskMoved(Answer):
    """Where the task stands now, and its version as a memory."""

    id: UUID
    version: int
    task: TaskState


class TaskBody(MemoryBody):
    """A task as it is listed."""

    task: TaskState


class TaskPage(Page):
    """`GET /v1/tasks`, newest first."""

    items: list[TaskBody]

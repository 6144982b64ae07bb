"""Bodies of the block at session start, and of its budgets."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from reverie.contracts.base import Answer, Request
from reverie.contracts.dreams import LimitsBody, SetLimits
from reverie.domain.budgets import MOST_ENTRIES, MOST_TOKENS

Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class BudgetsBody(Answer):
    """Tokens of each part and of all; `entries` is how many lines there are at most.

    `files` counts where open files are named.
    """

    hot: int
    warm: int
    stale: int
    session: int
    files: int
    entries: int
    total: int


class ContextEntry(Answer):
    """A line of the block. `why`: what it has to do with the open files."""

    id: UUID
    kind: str
    scope: str
    key: str | None = None
    text: str
    tokens: int
    pinned: bool = False
    stale_grade: str | None = None
    stale_reason: str | None = None
    why: str | None = None


class ContextSection(Answer):
    """A heading of the block, and the `part` whose budget pays for it."""

    name: str
    part: str
    tokens: int
    entries: list[ContextEntry]


class LeftOut(Answer):
    """A memory that has no line: `entries` were all taken, or the `budget` of its part."""

    id: UUID
    title: str
    kind: str
    section: str
    part: str
    reason: str


class Warning(Answer):
    """A limit of which 80 % are taken: `what` is a part, `total` or `entries`."""

    what: str
    used: int
    limit: int
    omitted: int
    message: str


class ContextAnswer(Answer):
    """`GET /v1/context`: the session-start block, as Markdown and in its sections.

    `more`: older memories were not looked at. `summaries`: the condensed state of each scope that
    has been dreamt over. `degraded` names what could not be asked (`store`, `session`), so that it
    is not in the block.
    """

    markdown: str
    tokens: int
    memories: list[UUID] = Field(default_factory=list)
    sections: list[ContextSection] = Field(default_factory=list)
    budgets: BudgetsBody
    omitted: list[LeftOut] = Field(default_factory=list)
    more: bool = False
    warnings: list[Warning] = Field(default_factory=list)
    summaries: dict[str, str] = Field(default_factory=dict)
    degraded: list[str] = Field(default_factory=list)


class SetBudgets(Request):
    """Budgets of a project to change; what is left out stays."""

    hot: Tokens | None = None
    warm: Tokens | None = None
    stale: Tokens | None = None
    session: Tokens | None = None
    files: Tokens | None = None
    entries: Annotated[int, Field(ge=0, le=MOST_ENTRIES)] | None = None


class ProjectSettings(Answer):
    """`GET /v1/projects/{name}/settings`: `context` holds the budgets of the block, `dream` says
    when its scopes dream."""

    project: str
    context: BudgetsBody
    dream: LimitsBody


class SetProject(Request):
    """`PATCH /v1/projects/{name}/settings`; what is null goes back to the defaults, what is left
    out stays."""

    context: SetBudgets | None = None
    dream: SetLimits | None = None

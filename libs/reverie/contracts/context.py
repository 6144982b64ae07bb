"""Bodies of the context block at session start and of preflow before each turn."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import NonBlankStr, RequestBody, ResponseBody
from reverie.contracts.dreams import DreamLimitsBody, DreamLimitsUpdate
from reverie.domain.context.active_set import ActiveSetLayer
from reverie.domain.context.budgets import MAX_ENTRIES, MAX_TOKENS

TokenBudget = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class ContextBudgetsBody(ResponseBody):
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


class ContextEntry(ResponseBody):
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
    reason: str | None = None


class ContextSection(ResponseBody):
    """A heading of the block, and the `part` whose budget pays for it."""

    name: str
    part: str
    tokens: int
    entries: list[ContextEntry]


class OmittedMemory(ResponseBody):
    """A memory that has no line: `entries` were all taken, or the `budget` of its part."""

    id: UUID
    title: str
    kind: str
    section: str
    part: str
    reason: str


class BudgetWarning(ResponseBody):
    """A limit of which 80 % are taken: `what` is a part, `total` or `entries`."""

    part: str
    used: int
    limit: int
    omitted: int
    message: str


class ContextResponse(ResponseBody):
    """`GET /v1/context`: the session-start block, as Markdown and in its sections.

    `more`: older memories were not looked at. `summaries`: the condensed state of each scope that
    has been dreamt over. `degraded` names what could not be asked (`store`, `session`), so that it
    is not in the block.
    """

    markdown: str
    tokens: int
    memories: list[UUID] = Field(default_factory=list)
    sections: list[ContextSection] = Field(default_factory=list)
    budgets: ContextBudgetsBody
    omitted: list[OmittedMemory] = Field(default_factory=list)
    truncated: bool = False
    warnings: list[BudgetWarning] = Field(default_factory=list)
    summaries: dict[str, str] = Field(default_factory=dict)
    degraded: list[str] = Field(default_factory=list)


class ContextBudgetsUpdate(RequestBody):
    """Budgets of a project to change; what is left out stays."""

    hot: TokenBudget | None = None
    warm: TokenBudget | None = None
    stale: TokenBudget | None = None
    session: TokenBudget | None = None
    files: TokenBudget | None = None
    entries: Annotated[int, Field(ge=0, le=MAX_ENTRIES)] | None = None


class ProjectSettingsBody(ResponseBody):
    """`GET /v1/projects/{name}/settings`: `context` holds the budgets of the block, `dream` says
    when its scopes dream."""

    project: str
    context: ContextBudgetsBody
    dream: DreamLimitsBody


class UpdateProjectSettingsRequest(RequestBody):
    """`PATCH /v1/projects/{name}/settings`; what is null goes back to the defaults, what is left
    out stays."""

    context: ContextBudgetsUpdate | None = None
    dream: DreamLimitsUpdate | None = None


OpenFilePath = Annotated[
    str, StringConstraints(min_length=1, max_length=1024, strip_whitespace=True)
]


class PreflowRequest(RequestBody):
    """`POST /v1/preflow`: the session and what its user says; `files` are open in the agent.

    `compacted`: what was given before is gone from the agent's context. `again`: answer the whole
    set, also what the session was given already.
    """

    session: UUID
    query: NonBlankStr
    files: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    budget_tokens: Annotated[int, Field(ge=50, le=100_000)] | None = None
    compacted: bool = False
    include_seen: bool = False


class PreflowItem(ResponseBody):
    """A line of the block, and why it is there. `id`: its memory; none of a summary's line."""

    id: UUID | None = None
    layer: ActiveSetLayer
    reason: str
    text: str
    scope: str
    kind: str
    score: float
    staleness: float = 0.0


class PreflowLayer(ResponseBody):
    """A layer of the set: its budget, the tokens of what is in it, how many lines, how many new."""

    budget: int
    tokens: int
    items: int
    new: int


class PreflowResponse(ResponseBody):
    """`markdown` is empty where there is nothing new. `tokens` are those of `markdown`.

    `active`: the memories of the set, also those given before; `omitted`: how many candidates the
    budgets left out. `degraded` names what could not be asked; `set` in it: something may be given
    twice; `session`: the turn is not counted (0) and nothing is given.
    """

    markdown: str
    tokens: int
    items: list[PreflowItem]
    active: list[UUID] = Field(default_factory=list)
    layers: dict[ActiveSetLayer, PreflowLayer]
    scopes: list[str] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)
    intent: str
    turn: int
    omitted: int = 0
    degraded: list[str] = Field(default_factory=list)
    trace_id: str | None = None

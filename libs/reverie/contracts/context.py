"""Bodies of the context block at session start and of preflow before each turn."""

from __future__ import annotations

import operator
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import Name, NonBlankStr, RequestBody, ResponseBody
from reverie.contracts.dreams import DreamLimitsBody, DreamLimitsUpdate
from reverie.domain.context.active_set import ActiveSetLayer
from reverie.domain.context.budgets import MAX_ENTRIES, MAX_TOKENS

TokenBudget = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class ContextBudgetsBody(ResponseBody):
    """Token budgets of the parts of the context block, and their total.

    `entries` is the maximum number of lines. `files` applies only if the request names open files.
    """

    hot: int
    warm: int
    stale: int
    session: int
    files: int
    entries: int
    total: int


class ContextEntry(ResponseBody):
    """A line of the context block, found in `markdown` by the end of its id.

    `reason` says how it relates to the open files. What is null or false is left out.
    """

    id: UUID
    kind: str
    scope: str
    key: str | None = Field(default=None, exclude_if=operator.not_)
    tokens: int
    pinned: bool = Field(default=False, exclude_if=operator.not_)
    stale_grade: str | None = Field(default=None, exclude_if=operator.not_)
    stale_reason: str | None = Field(default=None, exclude_if=operator.not_)
    reason: str | None = Field(default=None, exclude_if=operator.not_)


class ContextSection(ResponseBody):
    """A section of the context block. `part` is the budget that it uses."""

    name: str
    part: str
    tokens: int
    entries: list[ContextEntry]


class OmittedMemory(ResponseBody):
    """A memory without a line in the context block.

    `reason` is `entries` (no line was left) or `budget` (the budget of its part was used up).
    """

    id: UUID
    title: str
    kind: str
    section: str
    part: str
    reason: str


class BudgetWarning(ResponseBody):
    """A limit that is used to 80 % or more. `part` is a part of the block, `total` or `entries`."""

    part: str
    used: int
    limit: int
    omitted: int
    message: str


class ContextResponse(ResponseBody):
    """`GET /v1/context`: the context block for a session start, as Markdown and in sections.

    `truncated` means that older memories were not examined. `summaries` holds the summary of each
    digested scope. `degraded` names failed sources (`store`, `session`); the block lacks their
    content.
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
    """Changes of a project's context budgets. Null restores the default.

    An omitted field stays unchanged.
    """

    hot: TokenBudget | None = None
    warm: TokenBudget | None = None
    stale: TokenBudget | None = None
    session: TokenBudget | None = None
    files: TokenBudget | None = None
    entries: Annotated[int, Field(ge=0, le=MAX_ENTRIES)] | None = None


class ProjectSettingsBody(ResponseBody):
    """`GET /v1/projects/{name}/settings`.

    `context` holds the budgets of the context block. `dream` holds the thresholds that start a
    dream.
    """

    project: str
    context: ContextBudgetsBody
    dream: DreamLimitsBody


class UpdateProjectSettingsRequest(RequestBody):
    """`PATCH /v1/projects/{name}/settings`.

    Null restores the defaults. An omitted field stays unchanged.
    """

    context: ContextBudgetsUpdate | None = None
    dream: DreamLimitsUpdate | None = None


OpenFilePath = Annotated[
    str, StringConstraints(min_length=1, max_length=1024, strip_whitespace=True)
]


class PreflowRequest(RequestBody):
    """`POST /v1/preflow`: a session, and the message of its user.

    `files` are open in the agent. `compacted` means that the agent's context no longer holds
    earlier answers. `include_seen` requests the whole set, including memories that the session
    already received. Before an edit or a command, `before` says which: `query` is then the path of
    the file, or the command line; what is known of files that will likely be touched next may
    come, too. `edited` files were edited lately, and `tests` were run. `scopes` narrow or widen
    what the session sees.
    """

    session: UUID
    query: NonBlankStr
    scopes: list[NonBlankStr] | None = Field(default=None, max_length=100)
    before: Literal["edit", "command"] | None = None
    files: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    edited: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    tests: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    budget_tokens: Annotated[int, Field(ge=50, le=100_000)] | None = None
    compacted: bool = False
    include_seen: bool = False


class PreflowItem(ResponseBody):
    """A line of the block, and the reason for it. `id` is the memory; it is null for a summary.

    `relevance`, 0 to 1, says how surely it answers the message. It is null for what is there for
    another reason.
    """

    id: UUID | None = None
    layer: ActiveSetLayer
    reason: str
    text: str
    scope: str
    kind: str
    score: float
    staleness: float = 0.0
    relevance: float | None = None


class PreflowLayer(ResponseBody):
    """A layer of the active memory set: token budget, tokens, items and new items."""

    budget: int
    tokens: int
    items: int
    new: int


class PreflowResponse(ResponseBody):
    """The new context for a turn. `markdown` is empty if nothing is new; `tokens` counts its
    tokens.

    `active` lists the memories for this turn, including those sent before. `omitted` counts
    candidates that exceeded the budgets. `degraded` names failed sources. With `set` in it, a
    memory may be sent twice. With `session` in it, `turn` is 0 and no memory is sent.
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


class PredictRequest(RequestBody):
    """`POST /v1/predict`: what is touched now in a project, or in that of a session.

    `edited` files were edited lately, `files` are open, and `tests` were run: paths in the
    repository. `branch`: commits of it count beside those of the default branch; default: that of
    the session. `limit` counts files.
    """

    project: Name | None = None
    session: UUID | None = None
    branch: Name | None = None
    edited: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    files: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    tests: list[OpenFilePath] = Field(default_factory=list, max_length=50)
    limit: int = Field(default=5, ge=1, le=20)


class PredictedFileBody(ResponseBody):
    """A file that will likely be touched next. `reason` is the weightiest one."""

    path: str
    score: float
    reason: str


class PredictedMemory(ResponseBody):
    """A memory about a predicted file. `reason` names the file."""

    id: UUID
    kind: str
    scope: str
    key: str | None = None
    content: str
    reason: str
    staleness: float = 0.0
    stale_reason: str | None = None


class PredictResponse(ResponseBody):
    """The files that will likely be touched next, and what is known of them, likeliest first.

    `degraded` names failed sources (`store`, `session`).
    """

    files: list[PredictedFileBody]
    memories: list[PredictedMemory]
    degraded: list[str] = Field(default_factory=list)

"""Bodies of dreams, maintenance runs, scope summaries, dream limits and tenant settings."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody
from reverie.domain.extraction.dream_log import MAX_THRESHOLD_COUNT, MAX_THRESHOLD_MINUTES

ThresholdCount = Annotated[int, Field(ge=1, le=MAX_THRESHOLD_COUNT)]
Minutes = Annotated[float, Field(gt=0, le=MAX_THRESHOLD_MINUTES)]


class DreamRequest(RequestBody):
    """`POST /v1/dream`: digest all undigested turns of a scope now, including open topics."""

    scope: NonBlankStr | None = None
    session: UUID | None = None


class DreamRequestStatus(ResponseBody):
    """The state of a dream request.

    `running` means that a worker is busy with the scope and will check it again.
    """

    scope: str
    status: Literal["queued", "running"]


class DreamRun(ResponseBody):
    """A dream and its results. It digested `turns` of the `waiting` turns.

    `reason` says why it was requested. `seconds` gives the duration of each stage. `degraded` says
    why rules replaced the language model.
    """

    id: UUID
    scope: str
    status: str
    started_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    reason: str | None = None
    attempt: int = 1
    waiting: int = 0
    turns: int = 0
    created: int = 0
    reinforced: int = 0
    superseded: int = 0
    kinds: dict[str, int] = Field(default_factory=dict)
    outcomes: dict[str, int] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)
    llm_calls: int = 0
    llm_tokens: int = 0
    prompts: list[str] = Field(default_factory=list)
    degraded: list[str] = Field(default_factory=list)
    sessions: list[UUID] = Field(default_factory=list)
    error: str | None = None


class DreamPage(PageResponse):
    """`GET /v1/dreams`, newest first."""

    items: list[DreamRun]


class DreamInput(ResponseBody):
    """The input from one session: its turns from `first_ordinal` to `last_ordinal`."""

    session: UUID
    turns: int
    chars: int
    first_ordinal: int
    last_ordinal: int


class DreamDecision(ResponseBody):
    """One decision of a dream, and its reason.

    `content` and `status` are those of the memory now.
    """

    number: int
    outcome: str
    reason: str
    kind: str | None = None
    memory: UUID | None = None
    status: str | None = None
    content: str | None = None
    session: UUID | None = None
    turns: list[UUID] = Field(default_factory=list)


class DreamDetail(DreamRun):
    """`GET /v1/dreams/{id}`.

    `decisions` holds one page. `next` is the cursor of the following page.
    """

    input: list[DreamInput]
    decisions: list[DreamDecision]
    next: str | None = None


class UndigestedScope(ResponseBody):
    """A scope with undigested turns or a requested dream.

    `state` is `waiting` (not requested yet), `queued`, `running` or `parked` (given up with
    `error`). `new_turns` counts turns since the last check of a worker. The running dream `run` has
    digested `digested` of its `waiting` turns.
    """

    scope: str
    state: Literal["waiting", "queued", "running", "parked"]
    turns: int
    segments: int
    chars: int
    sessions: int
    new_turns: int
    since: AwareDatetime | None = None
    reason: str | None = None
    requested_at: AwareDatetime | None = None
    attempts: int = 0
    error: str | None = None
    run: UUID | None = None
    digested: int | None = None
    waiting: int | None = None


class UndigestedPage(PageResponse):
    """`GET /v1/dream`, by scope."""

    items: list[UndigestedScope]


class DreamLimitsBody(ResponseBody):
    """The thresholds that start a dream over a scope.

    `overrides` names the thresholds that differ from the service settings.
    """

    segments: int
    chars: int
    turns: int
    idle_minutes: float
    interval_minutes: float
    overrides: list[str] = Field(default_factory=list)


class DreamLimitsUpdate(RequestBody):
    """Changes of dream thresholds. Null restores the default; an omitted field is unchanged."""

    segments: ThresholdCount | None = None
    chars: ThresholdCount | None = None
    turns: ThresholdCount | None = None
    idle_minutes: Minutes | None = None
    interval_minutes: Minutes | None = None


class LlmBudgetBody(ResponseBody):
    """The tenant's daily language model budget (UTC), and its use today.

    `overrides` names the budgets that the tenant has set. They cannot exceed those of the service
    settings.
    """

    calls_per_day: int
    tokens_per_day: int
    overrides: list[str]
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int


class LlmBudgetUpdate(RequestBody):
    """Changes of the language model budget. `calls_per_day` 0 disables the language model for the
    tenant. Null restores the operator's budget.
    """

    calls_per_day: Annotated[int, Field(ge=0, le=MAX_THRESHOLD_COUNT)] | None = None
    tokens_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None


class TenantLimitsUpdate(RequestBody):
    """Changes of the limits that all keys of the tenant share.

    Null removes a limit. An omitted field stays unchanged. `memories` caps the active memories of
    the tenant. Beyond it a new one is refused; replacing one is not.
    """

    requests_per_minute: Annotated[int, Field(ge=1, le=2**53)] | None = None
    requests_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None
    memories_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None
    bytes_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None
    memories: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class TenantLimitsBody(ResponseBody):
    """The limits that all keys of the tenant share.

    `overrides` names the limits that the tenant has set. If the operator also sets one, the
    stricter limit applies. `used` gives the use of the limits in force.
    """

    limits: dict[str, int] = Field(default_factory=dict)
    overrides: list[str] = Field(default_factory=list)
    used: dict[str, int] = Field(default_factory=dict)


class TenantSettingsBody(ResponseBody):
    """`GET /v1/admin/settings`: settings for all scopes of the tenant."""

    dream: DreamLimitsBody
    llm: LlmBudgetBody
    limits: TenantLimitsBody = Field(default_factory=TenantLimitsBody)


class UpdateTenantSettingsRequest(RequestBody):
    """`PATCH /v1/admin/settings`.

    Null restores the service settings. An omitted field stays unchanged.
    """

    dream: DreamLimitsUpdate | None = None
    llm: LlmBudgetUpdate | None = None
    limits: TenantLimitsUpdate | None = None


class SummarySourceBody(ResponseBody):
    """A memory that a summary cites, at the cited version.

    `current` means that the memory is active and its content is unchanged.
    """

    memory: UUID
    version: int
    current: bool


class CitedSentence(ResponseBody):
    """A sentence that a language model wrote, and the memories that it rests on."""

    text: str
    memories: list[UUID]


class ScopeSummary(ResponseBody):
    """The summary of a scope. `sources` lists the cited memories in the order of the lines.

    `overview` has the sentences of a language model in the newest version. The newest version omits
    memories that were forgotten, replaced or archived since. An older version omits only forgotten
    memories. `run` is the dream that created an older version. `tokens`: of what the rules wrote,
    without `overview`.
    """

    scope: str
    version: int
    content: str
    tokens: int
    created_at: AwareDatetime
    run: UUID | None = None
    sources: list[SummarySourceBody] = Field(default_factory=list)
    overview: list[CitedSentence] = Field(default_factory=list)


class SummaryPage(PageResponse):
    """A page of summaries."""

    items: list[ScopeSummary]


class MaintenanceResponse(ResponseBody):
    """`POST /v1/maintenance/run`: counts of examined memories and of changes.

    `collected` counts archived files and entities without links; `restored` counts those linked
    again. `topics` counts topic nodes that were created, changed or removed. `ranked` counts
    memories with a new graph rank. `proposed` counts proposals for the vault. `derived` counts
    lessons derived from several memories. `reviewed` counts stale memories that a language model
    reviewed. `moved` counts memories that their use put into another tier. `summarized` counts long
    memories that were given a summary. `unfinished` names the steps that ran out of time.
    """

    examined: int = 0
    archived: int = 0
    promoted: int = 0
    collected: int = 0
    restored: int = 0
    merged: int = 0
    contradicted: int = 0
    topics: int = 0
    ranked: int = 0
    proposed: int = 0
    derived: int = 0
    reviewed: int = 0
    moved: int = 0
    summarized: int = 0
    unfinished: list[str] = Field(default_factory=list)

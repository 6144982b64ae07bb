"""Bodies of dreams, maintenance runs, scope summaries, dream limits and tenant settings."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import NonBlankStr, PageResponse, RequestBody, ResponseBody
from reverie.domain.extraction.dream_runs import MAX_THRESHOLD_COUNT, MAX_THRESHOLD_MINUTES

ThresholdCount = Annotated[int, Field(ge=1, le=MAX_THRESHOLD_COUNT)]
Minutes = Annotated[float, Field(gt=0, le=MAX_THRESHOLD_MINUTES)]


class DreamRequest(RequestBody):
    """`POST /v1/dream`: digest what is undigested in a scope now, open topics too."""

    scope: NonBlankStr | None = None
    session: UUID | None = None


class DreamRequestStatus(ResponseBody):
    """The request: `queued`, or `running` where a worker has the scope and will look again."""

    scope: str
    status: Literal["queued", "running"]


class DreamRun(ResponseBody):
    """What one dream did: `turns` of the `waiting` ones are digested, with what came of them.

    `reason`: why it was asked for; `seconds`: by stage; `degraded`: why rules stood in for a model.
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
    """What of a session went in: its turns from ordinal `first` to `last`."""

    session: UUID
    turns: int
    chars: int
    first_ordinal: int
    last_ordinal: int


class DreamDecision(ResponseBody):
    """What became of one thing, and why; `content` and `status` are the memory's as it stands."""

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
    """`GET /v1/dreams/{id}`; `decisions` come by the page, `next` is the cursor of the rest."""

    input: list[DreamInput]
    decisions: list[DreamDecision]
    next: str | None = None


class UndigestedScope(ResponseBody):
    """What of a scope is undigested, and what is asked for.

    `state`: `waiting` (nothing is asked for yet), `queued`, `running` or `parked` (given up, with
    the `error`); `new_turns` came since a worker last looked; `done` of the `waiting` turns of
    the running dream `run` are digested.
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
    """When a scope dreams; `overrides` names what is not as the services' settings say."""

    segments: int
    chars: int
    turns: int
    idle_minutes: float
    interval_minutes: float
    overrides: list[str] = Field(default_factory=list)


class DreamLimitsUpdate(RequestBody):
    """Limits to change; what is left out stays."""

    segments: ThresholdCount | None = None
    chars: ThresholdCount | None = None
    turns: ThresholdCount | None = None
    idle_minutes: Minutes | None = None
    interval_minutes: Minutes | None = None


class LlmBudgetBody(ResponseBody):
    """What the tenant may ask of a language model a day (UTC), and what it asked today.

    `overrides`: what the tenant has set itself, never more than the services allow.
    """

    calls_per_day: int
    tokens_per_day: int
    overrides: list[str]
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int


class LlmBudgetUpdate(RequestBody):
    """Budgets to change; 0 calls: no language model reads what the tenant says."""

    calls_per_day: Annotated[int, Field(ge=0, le=MAX_THRESHOLD_COUNT)] | None = None
    tokens_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None


class TenantLimitsUpdate(RequestBody):
    """What all keys of the tenant may do together, to change; what is left out stays."""

    requests_per_minute: Annotated[int, Field(ge=1, le=2**53)] | None = None
    requests_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None
    memories_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None
    bytes_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None


class TenantLimitsBody(ResponseBody):
    """What all keys of the tenant may do together, by the tenant and by who runs the services.

    `overrides`: what the tenant has set itself; the stricter of two counts. `used`: of those in
    force.
    """

    limits: dict[str, int] = Field(default_factory=dict)
    overrides: list[str] = Field(default_factory=list)
    used: dict[str, int] = Field(default_factory=dict)


class TenantSettingsBody(ResponseBody):
    """`GET /v1/admin/settings`: what holds for all scopes of the tenant."""

    dream: DreamLimitsBody
    llm: LlmBudgetBody
    limits: TenantLimitsBody = Field(default_factory=TenantLimitsBody)


class UpdateTenantSettingsRequest(RequestBody):
    """`PATCH /v1/admin/settings`; null goes back to the services' settings, what is left out
    stays."""

    dream: DreamLimitsUpdate | None = None
    llm: LlmBudgetUpdate | None = None
    limits: TenantLimitsUpdate | None = None


class SummarySourceBody(ResponseBody):
    """A memory that a summary rests on, as the version that it was then.

    `stands`: it is active and says the same.
    """

    memory: UUID
    version: int
    current: bool


class ScopeSummary(ResponseBody):
    """What stands in a scope, in few words, and the memories it rests on in the order of its lines.

    The newest version says nothing that was forgotten, replaced or archived since; an older one
    what it said then, less what was forgotten. `run`: the dream that made an older one.
    """

    scope: str
    version: int
    content: str
    tokens: int
    created_at: AwareDatetime
    run: UUID | None = None
    sources: list[SummarySourceBody] = Field(default_factory=list)


class SummaryPage(PageResponse):
    """A page of summaries."""

    items: list[ScopeSummary]


class MaintenanceResponse(ResponseBody):
    """`POST /v1/maintenance/run`: how many memories were looked at, and what was done to how many.

    `collected`: files and entities that nothing touches; `restored`: those touched again;
    `topics`: nodes of what memories keep being about that arose, changed or dissolved;
    `ranked`: memories whose weight in the graph was computed; `proposed`: for the vault;
    `derived`: lessons that several memories show; `reviewed`: memories in doubt that the language
    model looked over; `unfinished`: passes whose time was over.
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
    unfinished: list[str] = Field(default_factory=list)


class RestoreMemoryResponse(ResponseBody):
    """`POST /v1/memories/{id}/restore`: the memory is active again."""

    id: UUID
    version: int
    status: str = "active"

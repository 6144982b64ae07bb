"""Bodies of recall, and of the traces that explain how a recall was answered."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Name, NonBlankStr, RequestBody, ResponseBody, Tag, Timestamp
from reverie.contracts.memories import EdgeBody, Provenance
from reverie.domain.core.kinds import Tier


class RecallRequest(RequestBody):
    """`POST /v1/recall`. `include=["turns"]` finds raw turns too; a budget counts tokens.

    `project` looks through what a session of it sees (the project, its topics, the key's agent,
    global), in place of `scopes` or a `session`. `as_of` asks what was known then, by its words;
    `valid_at` what was true then. A memory must have all of `tags`, and touch one of `files` by
    its whole path; `since` and `until` bound when it was true or, where that is not said, written.
    """

    query: NonBlankStr
    scopes: list[str] | None = Field(default=None, max_length=50)
    project: Name | None = None
    limit: int = Field(default=10, ge=1, le=100)
    budget_tokens: int | None = Field(default=None, ge=1, le=100_000)
    depth: int = Field(default=2, ge=0, le=5)
    kinds: list[str] | None = Field(default=None, max_length=20)
    tiers: list[Tier] | None = Field(default=None, min_length=1, max_length=3)
    tags: list[Tag] | None = Field(default=None, min_length=1, max_length=20)
    files: list[NonBlankStr] | None = Field(default=None, min_length=1, max_length=50)
    min_confidence: float = Field(default=0.0, ge=0, le=1)
    since: Timestamp | None = None
    until: Timestamp | None = None
    include: list[Literal["turns", "archived"]] = Field(default_factory=list)
    session: UUID | None = None
    as_of: Timestamp | None = None
    valid_at: Timestamp | None = None


class RecallHit(ResponseBody):
    """One hit. `arms` says which arms found it, at what rank; `staleness` 0..1."""

    id: UUID
    type: Literal["memory", "turn"] = "memory"
    content: str
    snippet: str
    score: float
    kind: str
    scope: str
    key: str | None = None
    tags: list[str] = Field(default_factory=list)
    status: str = "active"
    staleness: float = 0.0
    stale_reason: str | None = None
    created_at: AwareDatetime
    provenance: Provenance
    arms: dict[str, int] = Field(default_factory=dict)


class RecallResponse(ResponseBody):
    """`degraded` names arms that could not answer; the rest did."""

    memories: list[RecallHit]
    edges: list[EdgeBody] = Field(default_factory=list)
    search_mode: str
    degraded: list[str] = Field(default_factory=list)
    tokens: int = 0
    intent: str | None = None
    trace_id: str | None = None


class TraceArm(ResponseBody):
    """Where an arm had a candidate, from 1, and the arm's own score of it."""

    rank: int
    score: float | None = None


class TraceHop(ResponseBody):
    """From which memory a candidate was reached, along which type of edge, and what that lent."""

    source: UUID
    type: str
    contribution: float


class TraceCandidate(ResponseBody):
    """What was found, and what became of it.

    `rank`: its place in the answer; `place`: among all that were weighed. `score` is `base` times
    all `factors`, of which those of 1 are left out; `base` is what the arms gave (`fused`) with
    what the hops lent. `similarity`, 0..1: to what was chosen before it. `cut`: what kept it out of
    the answer; `cut_by`: in favour of which memory, or (`beside`) the turn that it is read with.
    """

    id: UUID
    type: Literal["memory", "turn"] = "memory"
    kind: str | None = None
    scope: str | None = None
    status: str | None = None
    label: str | None = None
    rank: int | None = None
    position: int | None = None
    score: float
    base: float
    fused: float = 0.0
    arms: dict[str, TraceArm] = Field(default_factory=dict)
    hops: list[TraceHop] = Field(default_factory=list)
    factors: dict[str, float] = Field(default_factory=dict)
    similarity: float | None = None
    rejection_reason: str | None = None
    rejected_for: UUID | None = None


class TracePeriod(ResponseBody):
    """The time that a question speaks of; `until` is excluded."""

    since: AwareDatetime
    until: AwareDatetime


class TraceSummary(ResponseBody):
    """A recall in a line. `trace_id`: of the request, as the answer named it."""

    id: UUID
    trace_id: str | None = None
    at: AwareDatetime
    actor: str
    session: UUID | None = None
    query: str
    intent: str
    found: int
    returned: int
    milliseconds: float
    degraded: list[str] = Field(default_factory=list)


class TraceDetail(TraceSummary):
    """`GET /v1/traces/{id}`: everything about one recall.

    `agent`: whose turns were looked through, none for all. `arms`: how much each brought; `fusion`
    with `weights`: how they were joined.
    `took`: milliseconds by stage. `omitted`: candidates that are not listed. `others`: recalls that
    the same request led to. Memories that may not be read, or no longer, are left out.
    """

    agent: str | None = None
    scopes: list[str]
    language: str
    keywords: list[str] = Field(default_factory=list)
    identifiers: list[str] = Field(default_factory=list)
    paths: list[str] = Field(default_factory=list)
    phrases: list[str] = Field(default_factory=list)
    period: TracePeriod | None = None
    preferred_kinds: list[str] = Field(default_factory=list)
    projects: list[str] = Field(default_factory=list)
    limit: int
    budget_tokens: int | None = None
    depth: int
    min_confidence: float = 0.0
    turns: bool = False
    as_of: AwareDatetime | None = None
    valid_at: AwareDatetime | None = None
    statuses: list[str] = Field(default_factory=list)
    kinds: list[str] | None = None
    tiers: list[str] | None = None
    tags: list[str] | None = None
    files: list[str] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    tokens: int
    fusion: str
    weights: dict[str, float] = Field(default_factory=dict)
    arms: dict[str, int] = Field(default_factory=dict)
    timings: dict[str, float] = Field(default_factory=dict)
    candidates: list[TraceCandidate] = Field(default_factory=list)
    omitted: int = 0
    related_traces: list[UUID] = Field(default_factory=list)


class TracePage(ResponseBody):
    """`GET /v1/traces`: the newest first."""

    items: list[TraceSummary]
    next: str | None = None

"""Bodies of recall, and of the traces that explain how a recall was answered."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Name, NonBlankStr, RequestBody, ResponseBody, Tag, Timestamp
from reverie.contracts.memories.memories import EdgeBody, Provenance
from reverie.domain.core.kinds import Tier


class RecallRequest(RequestBody):
    """`POST /v1/recall`. `include=["turns"]` also finds raw turns. `budget_tokens` limits the
    tokens. Without `limit`, the setting `recall_limit` applies, which is 10 by default.

    `project` searches the project, its topics, the key's agent and global; it replaces `scopes` and
    `session`. A search by `project` or `session` includes the projects that are linked to it,
    unless `linked_projects` is false. `as_of` searches what was known at that time, by words only.
    `valid_at` searches what was true at that time. A memory must have all `tags` and refer to one
    of `files` by its full path. `since` and `until` limit the time of validity, or the time of
    writing if validity is unknown.
    """

    query: NonBlankStr
    scopes: list[str] | None = Field(default=None, min_length=1, max_length=50)
    project: Name | None = None
    limit: int | None = Field(default=None, ge=1, le=100)
    linked_projects: bool = True
    budget_tokens: int | None = Field(default=None, ge=1, le=100_000)
    depth: int = Field(default=2, ge=0, le=5)
    kinds: list[str] | None = Field(default=None, min_length=1, max_length=20)
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
    """One hit. `arms` maps each arm that found it to its rank. `staleness` is from 0 to 1.

    `score` ranks the hits of this answer. `relevance`, 0 to 1, says how surely the hit answers the
    question, and is comparable across questions; null if it cannot be rated. `content`: of a record
    that is too long for `budget_tokens`, the part that answers best; "…" marks what is left out.
    `snippet`: whole sentences around what matched, at most 400 tokens. `linked`: it is of a project
    that is linked to the one that was searched.
    """

    id: UUID
    type: Literal["memory", "turn"] = "memory"
    content: str
    snippet: str
    score: float
    relevance: float | None = None
    kind: str
    scope: str
    linked: bool = False
    key: str | None = None
    tags: list[str] = Field(default_factory=list)
    status: str = "active"
    staleness: float = 0.0
    stale_reason: str | None = None
    created_at: AwareDatetime
    provenance: Provenance
    arms: dict[str, int] = Field(default_factory=dict)


class RecallResponse(ResponseBody):
    """The hits of a recall. `degraded` names the arms that failed; the other arms answered.

    `answered` is false if no hit is relevant enough: the best of what was found is still listed.
    `relevance` is that of the best hit.
    """

    memories: list[RecallHit]
    answered: bool = True
    relevance: float | None = None
    edges: list[EdgeBody] = Field(default_factory=list)
    search_mode: str
    degraded: list[str] = Field(default_factory=list)
    tokens: int = 0
    intent: str | None = None
    trace_id: str | None = None


class TraceArm(ResponseBody):
    """The rank of a candidate in an arm, from 1, and the arm's score."""

    rank: int
    score: float | None = None


class TraceHop(ResponseBody):
    """A graph step to a candidate: the source memory, the edge type and the added score."""

    source: UUID
    type: str
    contribution: float


class TraceCandidate(ResponseBody):
    """A candidate, and the result of its ranking.

    `rank` is its position in the answer; `position` is its position among all candidates. `score`
    is `base` times all `factors`; factors of 1 are omitted. `base` is the arms' score (`fused`)
    plus the contributions of the hops. `similarity`, 0 to 1, compares it with the candidates
    selected before it. `rejection_reason` says why the answer omits it. `rejected_for` is the
    memory that replaced it. With the reason `beside`, it is the turn that it was merged into. For
    a key that does not read the whole tenant, scores have two digits, and those of an arm are
    relative to its best.
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


class TraceDelivery(ResponseBody):
    """A memory that a preflow gave or held back.

    `outcome` is `given`, or the reason: `already_given`, `relevance` (below the threshold), `score`
    (far below the best), `limit` (others come first) or `budget` (too many tokens). `layer` is
    `resident`, `recent` or `on_demand`.
    """

    id: UUID
    label: str | None = None
    outcome: str
    relevance: float | None = None
    layer: str | None = None


class TraceLayer(ResponseBody):
    """A layer of the active memory set: the tokens that it used of its budget."""

    name: str
    tokens: int
    budget_tokens: int


class TracePeriod(ResponseBody):
    """The period that a question refers to. It excludes `until`."""

    since: AwareDatetime
    until: AwareDatetime


class TraceSummary(ResponseBody):
    """A short record of a recall. `trace_id` is the id that its response contained.

    `given` counts the memories that a preflow gave; it is null for other recalls. `before` says
    that it ran before an edit or a command, which `query` names. `delivered_at` is when a hook
    confirmed that it wrote them out.
    """

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
    given: int | None = None
    before: Literal["edit", "command"] | None = None
    delivered_at: AwareDatetime | None = None


class TraceDetail(TraceSummary):
    """`GET /v1/traces/{id}`: all details of one recall.

    `agent` is the agent whose turns were searched; null means all agents. `arms` gives the number
    of hits by arm. `fusion` and `weights` say how the arms were combined. `timings` gives
    milliseconds by stage. `omitted` counts unlisted candidates. `related_traces` are other recalls
    of the same request. `deliveries` says what a preflow gave and held back, and `layers` how full
    its active set was. Memories that the key cannot read are omitted.
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
    deliveries: list[TraceDelivery] = Field(default_factory=list)
    layers: list[TraceLayer] = Field(default_factory=list)


class DeliveryReceipt(ResponseBody):
    """`POST /v1/traces/{id}/delivery`: when a hook first confirmed that it wrote out what the
    preflow gave."""

    delivered_at: AwareDatetime


class TracePage(ResponseBody):
    """`GET /v1/traces`, newest first."""

    items: list[TraceSummary]
    next: str | None = None

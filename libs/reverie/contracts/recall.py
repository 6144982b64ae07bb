"""Bodies of recall and context."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from reverie.contracts.base import Answer, Moment, Name, Request, Tag, Text
from reverie.contracts.memories import Edge, Provenance
from reverie.domain.kinds import Tier


class Recall(Request):
    """`POST /v1/recall`. `include=["turns"]` finds raw turns too; a budget counts tokens.

    `project` looks through what a session of it sees (the project, its topics, the key's agent,
    global), in place of `scopes` or a `session`. `as_of` asks what was known then, by its words;
    `valid_at` what was true then. A memory must have all of `tags`, and touch one of `files` by
    its whole path; `since` and `until` bound when it was true or, where that is not said, written.
    """

    query: Text
    scopes: list[str] | None = Field(default=None, max_length=50)
    project: Name | None = None
    limit: int = Field(default=10, ge=1, le=100)
    budget_tokens: int | None = Field(default=None, ge=1, le=100_000)
    depth: int = Field(default=2, ge=0, le=5)
    kinds: list[str] | None = Field(default=None, max_length=20)
    tiers: list[Tier] | None = Field(default=None, min_length=1, max_length=3)
    tags: list[Tag] | None = Field(default=None, min_length=1, max_length=20)
    files: list[Text] | None = Field(default=None, min_length=1, max_length=50)
    min_confidence: float = Field(default=0.0, ge=0, le=1)
    since: Moment | None = None
    until: Moment | None = None
    include: list[Literal["turns", "archived"]] = Field(default_factory=list)
    session: UUID | None = None
    as_of: Moment | None = None
    valid_at: Moment | None = None


class Recalled(Answer):
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


class RecallAnswer(Answer):
    """`degraded` names arms that could not answer; the rest did."""

    memories: list[Recalled]
    edges: list[Edge] = Field(default_factory=list)
    search_mode: str
    degraded: list[str] = Field(default_factory=list)
    tokens: int = 0
    intent: str | None = None
    trace_id: str | None = None

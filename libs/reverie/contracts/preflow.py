"""Bodies of preflow: what an agent asks for before each turn."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from reverie.contracts.base import Answer, Request, Text
from reverie.domain.active_set import Layer

Path = Annotated[str, StringConstraints(min_length=1, max_length=1024, strip_whitespace=True)]


class Preflow(Request):
    """`POST /v1/preflow`: the session and what its user says; `files` are open in the agent.

    `compacted`: what was given before is gone from the agent's context. `again`: answer the whole
    set, also what the session was given already.
    """

    session: UUID
    query: Text
    files: list[Path] = Field(default_factory=list, max_length=50)
    budget_tokens: Annotated[int, Field(ge=50, le=100_000)] | None = None
    compacted: bool = False
    again: bool = False


class PreflowItem(Answer):
    """A line of the block, and why it is there. `id`: its memory; none of a summary's line."""

    id: UUID | None = None
    layer: Layer
    why: str
    text: str
    scope: str
    kind: str
    score: float
    staleness: float = 0.0


class PreflowLayer(Answer):
    """A layer of the set: its budget, the tokens of what is in it, how many lines, how many new."""

    budget: int
    tokens: int
    items: int
    new: int


class PreflowAnswer(Answer):
    """`markdown` is empty where there is nothing new. `tokens` are those of `markdown`.

    `active`: the memories of the set, also those given before; `omitted`: how many candidates the
    budgets left out. `degraded` names what could not be asked; `set` in it: something may be given
    twice; `session`: the turn is not counted (0) and nothing is given.
    """

    markdown: str
    tokens: int
    items: list[PreflowItem]
    active: list[UUID] = Field(default_factory=list)
    layers: dict[Layer, PreflowLayer]
    scopes: list[str] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)
    intent: str
    turn: int
    omitted: int = 0
    degraded: list[str] = Field(default_factory=list)
    trace_id: str | None = None

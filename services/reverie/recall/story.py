"""What is asked of recall, what it answers, and how the answer came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from reverie.domain.question import Reading
from reverie.domain.ranking import Found, Scored
from reverie.recall.hits import Between, Cut, Hit
from reverie.store.search import Filter


@dataclass(frozen=True)
class Question:
    """What is asked: the text, readable scope patterns, what may be found, how far to walk.

    `agent`: whose turns may be found, for transcripts are not shared; None is any.
    """

    text: str
    only: Filter
    limit: int
    budget_tokens: int | None
    depth: int
    turns: bool
    agent: str | None = None
    min_confidence: float = 0.0
    as_of: datetime | None = None


@dataclass
class Story:
    """How an answer came about: what its trace is told from.

    `found`: before weighing; `ranked`: after it; `turns`: raw ones. `alike`: how like one was to
    what was chosen before it. `left`: what is not in the answer. `took`: milliseconds by stage.
    """

    reading: Reading
    weights: Mapping[str, float]
    arms: Mapping[str, Sequence[Scored]] = field(default_factory=dict)
    found: Sequence[Found] = ()
    ranked: Sequence[Found] = ()
    turns: Sequence[Found] = ()
    alike: Mapping[UUID, float] = field(default_factory=dict)
    left: dict[UUID, Cut] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The hits in order, the edges among them, the tokens they take, the arms that were missing."""

    hits: list[Hit]
    edges: list[Between]
    tokens: int
    degraded: list[str]
    story: Story

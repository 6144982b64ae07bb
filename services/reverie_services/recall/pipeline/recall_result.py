"""Data classes of a recall: the question, the result, and the explanation of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.retrieval.ranking import ScoredHit, ScoredMemory
from reverie.store.search.search import SearchFilter
from reverie_services.recall.pipeline.result_assembly import AnswerEdge, RankedHit, Rejection


@dataclass(frozen=True)
class RecallQuestion:
    """What is asked: the text, readable scope patterns, what may be found, how far to walk.

    `agent`: whose turns may be found, for transcripts are not shared; None is any.
    """

    text: str
    search_filter: SearchFilter
    limit: int
    budget_tokens: int | None
    depth: int
    include_turns: bool
    agent: str | None = None
    min_confidence: float = 0.0
    as_of: datetime | None = None


@dataclass
class RecallExplanation:
    """How an answer came about: what its trace is told from.

    `candidates`: before weighing; `ranked`: after it; `include_turns`: raw ones. `similarities`:
    how like one was to what was chosen before it. `rejections`: what is not in the answer.
    `stage_milliseconds`:
    milliseconds by stage.
    """

    parsed_question: ParsedQuestion
    weights: Mapping[str, float]
    hits_by_arm: Mapping[str, Sequence[ScoredHit]] = field(default_factory=dict)
    candidates: Sequence[ScoredMemory] = ()
    ranked: Sequence[ScoredMemory] = ()
    turns: Sequence[ScoredMemory] = ()
    similarities: Mapping[UUID, float] = field(default_factory=dict)
    rejections: dict[UUID, Rejection] = field(default_factory=dict)
    stage_milliseconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RecallResult:
    """The hits in order, the edges among them, the tokens they take, the arms that were missing."""

    hits: list[RankedHit]
    edges: list[AnswerEdge]
    tokens: int
    degraded: list[str]
    explanation: RecallExplanation

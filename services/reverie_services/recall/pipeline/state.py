"""Data classes of a recall: its question, what it has found so far, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from reverie.domain.core.memory import is_title_only
from reverie.domain.retrieval.answer import AnswerEdge, RankedHit
from reverie.domain.retrieval.candidates import (
    RecallCandidate,
    Rejection,
    ScoredMemory,
    SearchHit,
    TurnHit,
)
from reverie.domain.retrieval.question_parsing import ParsedQuestion, list_distinctive_words
from reverie.domain.retrieval.relevance import (
    Likeness,
    compute_length,
    compute_relevance,
    compute_word_share,
)
from reverie.domain.retrieval.succession import find_successors, iterate_successors
from reverie.inference.sparse_encoder import WordWeights
from reverie.store.search.search import SearchFilter
from reverie_services.recall.pipeline.stage_runner import Deadline, StageReport


@dataclass(frozen=True)
class RecallQuestion:
    """The question of a recall: its text, what may be found, and how far the graph is walked.

    `agent`: the agent whose turns may be found, for transcripts are not shared; None is any.
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


@dataclass(frozen=True)
class ArmWeights:
    """`arms`: the weights of the arms that retrieve; `sparse`: that of the arm that rescores."""

    arms: Mapping[str, float] = field(default_factory=dict)
    sparse: float = 0.0


@dataclass(frozen=True)
class RecallState:
    """All that a recall has found so far; each stage returns a new state.

    `texts`: the question without project names, then its rephrasings. `found`: the memories before
    their factors apply. `candidates`: those of them that were loaded. `factors`: the factors of
    each loaded one. `skipped`: those that could not reach the answer and were not loaded.
    `boosts`: the factors of memories that have no vectors yet. `ranked`: the memories after their
    factors were applied. `similarities`: how similar a memory is to those selected before it.
    """

    question: RecallQuestion
    deadline: Deadline
    now: datetime
    texts: tuple[str, ...]
    parsed_question: ParsedQuestion
    weights: ArmWeights = field(default_factory=ArmWeights)
    word_weights: WordWeights | None = None
    hits_by_arm: Mapping[str, Sequence[SearchHit]] = field(default_factory=dict)
    turns: Sequence[TurnHit] = ()
    boosts: Mapping[UUID, float] = field(default_factory=dict)
    found: Sequence[ScoredMemory] = ()
    speakers: frozenset[str] = frozenset()
    candidates: Mapping[UUID, RecallCandidate] = field(default_factory=dict)
    factors: Mapping[UUID, Mapping[str, float]] = field(default_factory=dict)
    skipped: frozenset[UUID] = frozenset()
    ranked: Sequence[ScoredMemory] = ()
    selected: Sequence[ScoredMemory] = ()
    scored_turns: Sequence[ScoredMemory] = ()
    similarities: Mapping[UUID, float] = field(default_factory=dict)
    rejections: Mapping[UUID, Rejection] = field(default_factory=dict)
    report: StageReport = field(default_factory=StageReport)


@dataclass(frozen=True)
class RecallResult:
    """The hits in order, the edges among them, their tokens, and the state that explains them."""

    hits: Sequence[RankedHit]
    edges: Sequence[AnswerEdge]
    tokens: int
    state: RecallState

    @property
    def degraded(self) -> list[str]:
        """The stages that failed, sorted."""
        return sorted(self.state.report.degraded)

    @property
    def relevance(self) -> float | None:
        """The relevance of the best hit; None if no hit's is known."""
        return max((h.relevance for h in self.hits if h.relevance is not None), default=None)

    def is_answered(self, threshold: float) -> bool:
        """Whether a hit is relevant, or cannot be rated."""
        return any(hit.relevance is None or hit.relevance >= threshold for hit in self.hits)


def rate_relevance(state: RecallState, model: str) -> dict[UUID, float]:
    """Rates the selected memories by vectors of that model.

    A memory is at least as relevant as one that it replaced: it answers the same questions.
    """
    words = list_distinctive_words(state.texts[0])
    ratings = {memory.id: _rate_memory(state, memory, words, model) for memory in state.selected}
    successors = find_successors(state.candidates)
    for memory in state.ranked if successors else ():
        newer_ids = [id for id in iterate_successors(memory.id, successors) if id in ratings]
        if newer_ids:
            rating = ratings.get(memory.id) or _rate_memory(state, memory, words, model)
            ratings |= {id: max(ratings[id], rating) for id in newer_ids}
    return ratings


def _rate_memory(
    state: RecallState, memory: ScoredMemory, words: Sequence[str], model: str
) -> float:
    """A memory that the vector arm did not find is at most as near as its last hit."""
    content = state.candidates[memory.id].content
    if is_title_only(content):
        return 0.0
    cosine, vector_hits = memory.raw_scores.get("meaning"), state.hits_by_arm.get("meaning")
    if cosine is None and vector_hits and memory.id not in state.boosts:
        cosine = vector_hits[-1].score
    length = compute_length(state.word_weights or {})
    product = memory.raw_scores.get("sparse")
    return compute_relevance(
        Likeness(
            cosine=cosine,
            sparse=product / length if product is not None and length else None,
            words=compute_word_share(words, content),
            length=len(content),
        ),
        model,
    )

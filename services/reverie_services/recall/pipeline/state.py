"""Data classes of a recall: question, state, result and record; and the turn of a preflow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np

from reverie.domain.access.principals import Principal
from reverie.domain.core.kinds import ANCHOR_KINDS
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import AnswerEdge, RankedHit
from reverie.domain.retrieval.candidates import (
    EDGE_KINDS,
    NO_CANDIDATES,
    NO_EDGES,
    ArmHits,
    Candidates,
    GraphHop,
    NeighbourEdges,
    Rejection,
    ScoredMemory,
    TurnHit,
    find_positions,
    is_among,
)
from reverie.domain.retrieval.question_parsing import ParsedQuestion
from reverie.domain.retrieval.ranking_facts import (
    FACTS,
    KINDS,
    BoolArray,
    FactTable,
    FloatArray,
    IntArray,
    list_ids,
)
from reverie.domain.retrieval.succession import Successors
from reverie.inference.sparse_encoder import WordWeights
from reverie.store.search.search import SearchFilter
from reverie.store.sessions.sessions import SessionRecord
from reverie_services.recall.pipeline.stage_runner import Deadline, StageReport

NO_FACTS = FactTable(np.empty(0, FACTS), np.empty(0, np.bool_), np.empty(0, np.int32), ())


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

    `texts`: the question without project names, then its rephrasings. `named_edges`: from the
    files and entities that it names. `candidates`: the memories before their factors apply.
    `facts`, `factors`, `totals` and `is_eligible` have a row for each of them: `totals` are the
    scores with all factors, `is_eligible` says which may be answered. `memories`: those that
    were loaded, `contents` the texts by which they are found, and `loaded` their positions, in the
    end in the order of their totals. `ranked`: the first of them, which may be selected.
    `successors`: what replaced or contradicts each candidate, if it may be answered itself.
    `similarities`: how similar a memory is to those selected before.
    """

    question: RecallQuestion
    deadline: Deadline
    now: datetime
    texts: tuple[str, ...]
    parsed_question: ParsedQuestion
    weights: ArmWeights = field(default_factory=ArmWeights)
    word_weights: WordWeights | None = None
    hits_by_arm: Mapping[str, ArmHits] = field(default_factory=dict)
    turns: Sequence[TurnHit] = ()
    named_edges: NeighbourEdges = NO_EDGES
    candidates: Candidates = NO_CANDIDATES
    facts: FactTable = NO_FACTS
    factors: Mapping[str, FloatArray] = field(default_factory=dict)
    totals: FloatArray = field(default_factory=lambda: NO_CANDIDATES.scores)
    is_eligible: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    memories: Mapping[UUID, Memory] = field(default_factory=dict)
    contents: dict[UUID, str] = field(default_factory=dict)
    loaded: IntArray = field(default_factory=lambda: NO_CANDIDATES.docs)
    ranked: Sequence[ScoredMemory] = ()
    successors: Successors = field(default_factory=dict)
    selected: Sequence[ScoredMemory] = ()
    scored_turns: Sequence[ScoredMemory] = ()
    similarities: Mapping[UUID, float] = field(default_factory=dict)
    rejections: Mapping[UUID, Rejection] = field(default_factory=dict)
    report: StageReport = field(default_factory=StageReport)

    def describe(self, positions: IntArray) -> list[ScoredMemory]:
        """The candidates at these positions with what makes up their scores."""
        candidates, records = self.candidates, self.facts.records[positions]
        hashes = records["hash"].tolist()
        hops = self._list_hops(candidates.docs[positions])
        ranks = {arm: values[positions].tolist() for arm, values in candidates.ranks.items()}
        raw_scores = {
            arm: values[positions].tolist() for arm, values in candidates.raw_scores.items()
        }
        factors = {name: values[positions].tolist() for name, values in self.factors.items()}
        totals, fused, bases = (
            values[positions].tolist()
            for values in (self.totals, candidates.fused, candidates.scores)
        )
        return [
            ScoredMemory(
                id=memory_id,
                score=totals[row],
                arm_ranks={arm: values[row] for arm, values in ranks.items() if values[row]},
                raw_scores={
                    arm: values[row]
                    for arm, values in raw_scores.items()
                    if not math.isnan(values[row])
                },
                fused_score=fused[row],
                hops=tuple(hops.get(doc, ())),
                factors={
                    name: round(values[row], 4)
                    for name, values in factors.items()
                    if values[row] != 1.0
                },
                base_score=bases[row],
                text_hash=hashes[row],
                doc=doc,
            )
            for row, (memory_id, doc) in enumerate(
                zip(list_ids(records), candidates.docs[positions].tolist(), strict=True)
            )
        ]

    def _list_hops(self, docs: IntArray) -> dict[int, list[GraphHop]]:
        """The hops to each of these candidates."""
        listed: dict[int, list[GraphHop]] = {}
        for hops in self.candidates.hops:
            kept = np.flatnonzero(is_among(docs, hops.targets))
            rows = find_positions(self.candidates.docs, hops.sources[kept])
            for target, source, kind, contribution in zip(
                hops.targets[kept].tolist(),
                list_ids(self.facts.records[rows]),
                hops.kinds[kept].tolist(),
                hops.contributions[kept].tolist(),
                strict=True,
            ):
                hop = GraphHop(source, EDGE_KINDS[kind].value, contribution)
                listed.setdefault(target, []).append(hop)
        return listed

    def explain_unloaded(self, position: int) -> Rejection:
        """Why a candidate was not loaded."""
        if self.is_eligible[position]:
            return Rejection("score")
        if not self.facts.passes[position]:
            return Rejection("not read in time" if "store" in self.report.degraded else "filter")
        is_anchor = KINDS[self.facts.records["kind"][position]] in ANCHOR_KINDS
        if is_anchor and self.question.search_filter.kinds is None:
            return Rejection("anchor")
        if self.factors["confidence"][position].round(4) < self.question.min_confidence:
            return Rejection("confidence")
        return Rejection("not read in time" if "load" in self.report.degraded else "gone meanwhile")


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


class PreflowOutcome(NamedTuple):
    """What preflow did with a memory: `given`, or why it was held back; and its relevance.

    Reasons: `already_given`, `relevance` (below the threshold), `score` (far below the best),
    `limit` (others come first), `budget` (its text needs too many tokens).
    """

    id: UUID
    outcome: str
    relevance: float | None = None
    layer: str | None = None
    """The layer of the active set that it entered, or would have entered."""


@dataclass(frozen=True)
class RecallRecord:
    """A recall that was answered, for whom, in which request, and in how many milliseconds."""

    id: UUID
    trace_id: str | None
    at: datetime
    principal: Principal
    session: UUID | None
    question: RecallQuestion
    result: RecallResult
    milliseconds: float
    fusion: str
    deliveries: Sequence[PreflowOutcome] | None = None
    """What preflow gave and held back; None if this was not a preflow."""
    layers: Sequence[tuple[str, int, int]] = ()
    """Each layer of the active set: its name, the tokens that it used, its budget."""
    before: str | None = None
    """`edit` or `command`: preflow looked up what names the file or the command of the question."""


@dataclass(frozen=True)
class PreflowTurn:
    """A turn that begins: its session, message, open files, and token budget."""

    session: SessionRecord
    query: str
    files: Sequence[str] = ()
    budget_tokens: int | None = None
    compacted: bool = False
    resend_all: bool = False
    before: Literal["edit", "command"] | None = None
    """The query is the path of a file to be edited, or a command to be run."""
    scopes: list[str] | None = None
    """The scopes to look through; None for those of the session."""
    edited: Sequence[str] = ()
    tests: Sequence[str] = ()
    """Files that were edited lately, and tests that were run."""

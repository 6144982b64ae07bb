"""Encodes the trace that explains a recall as it is stored, and decodes it for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any
from uuid import UUID

import numpy as np

from reverie.domain.redaction.redactor import Redactor
from reverie.domain.retrieval.candidates import Rejection, ScoredMemory
from reverie.domain.retrieval.question_parsing import ParsedQuestion, parse_question
from reverie.domain.retrieval.ranking_facts import IntArray
from reverie.domain.text.index_terms import query_text
from reverie.store.search.recall_traces import RecallTraceRecord
from reverie_services.recall.pipeline.state import (
    PreflowOutcome,
    RecallQuestion,
    RecallRecord,
    RecallResult,
    RecallState,
)

MAX_LISTED_CANDIDATES = 60
"""The number of candidates that a trace lists, the best first."""
MAX_KEYWORDS = 100
QUERY_CHARS = 2_000
REJECTED_BY_LIMIT = Rejection("limit")


def build_trace(record: RecallRecord, redactor: Redactor) -> RecallTraceRecord:
    """The trace that is stored; it holds nothing that redaction removes."""
    question, state = record.question, record.result.state
    redacted = redactor.redact(question.text)
    parsed_question = (
        parse_question(redacted.text, record.at) if redacted.count else state.parsed_question
    )
    request = {
        **_describe_question(redacted.text, parsed_question),
        **_describe_request(question, redactor),
        **_describe_outcome(record),
        "intent": state.parsed_question.intent.value,
    }
    return RecallTraceRecord(
        id=record.id,
        trace=UUID(record.trace_id) if record.trace_id else None,
        at=record.at,
        actor=record.principal.actor,
        session=record.session,
        agent=question.agent,
        scopes=question.search_filter.scopes,
        query=redacted.text[:QUERY_CHARS],
        asked=request,
        details={
            **_describe_result(record.result),
            "deliveries": record.deliveries or (),
            "layers": record.layers,
        },
    )


def _describe_question(text: str, parsed_question: ParsedQuestion) -> dict[str, Any]:
    period = parsed_question.time_range
    return {
        "language": parsed_question.language,
        "keywords": query_text(text).split()[:MAX_KEYWORDS],
        "identifiers": parsed_question.identifiers,
        "paths": parsed_question.paths,
        "phrases": parsed_question.phrases,
        "projects": sorted(parsed_question.projects),
        "period": period and {"since": period.since.isoformat(), "until": period.until.isoformat()},
        "preferred_kinds": sorted(kind.value for kind in parsed_question.preferred_kinds),
    }


def _describe_request(question: RecallQuestion, redactor: Redactor) -> dict[str, Any]:
    """The options of the question; those that were not given are left out."""
    search_filter = question.search_filter
    moments = {
        "as_of": question.as_of,
        "valid_at": search_filter.valid_at,
        "since": search_filter.since,
        "until": search_filter.until,
    }
    lists = {
        "kinds": search_filter.kinds,
        "tiers": search_filter.tiers,
        "tags": search_filter.tags,
        "files": search_filter.files,
    }
    filters = {name: list(values) for name, values in lists.items() if values is not None}
    return {
        "limit": question.limit,
        "budget_tokens": question.budget_tokens,
        "depth": question.depth,
        "min_confidence": question.min_confidence,
        "turns": question.include_turns,
        "statuses": list(search_filter.status),
        **(redactor.redact_value(filters).value if filters else {}),
        **{name: moment.isoformat() for name, moment in moments.items() if moment is not None},
    }


def _describe_outcome(record: RecallRecord) -> dict[str, Any]:
    result = record.result
    outcomes = [delivery.outcome for delivery in record.deliveries or ()]
    of_preflow: dict[str, Any] = {}
    if record.deliveries is not None:
        of_preflow["given"] = outcomes.count("given")
    found = len(result.state.candidates) + len(result.state.scored_turns)
    returned = len(result.hits)
    if record.before:
        # Nothing was scored: what names the file or the command is all there is.
        found, returned = len(outcomes), outcomes.count("given")
        of_preflow["before"] = record.before
    return {
        **of_preflow,
        "found": found,
        "returned": returned,
        "tokens": result.tokens,
        "milliseconds": round(record.milliseconds, 2),
        "degraded": result.degraded,
        "fusion": record.fusion,
        "weights": dict(result.state.weights.arms, sparse=result.state.weights.sparse),
    }


def _describe_result(result: RecallResult) -> dict[str, Any]:
    state = result.state
    rest = state.describe(state.loaded[len(state.ranked) : MAX_LISTED_CANDIDATES])
    ranked = [*state.ranked, *rest]
    positions = {memory.id: position for position, memory in enumerate(ranked, start=1)}
    listed = [
        (
            *_encode_scores(memory),
            *_encode_outcome(state, memory.id, rank),
            positions.get(memory.id),
        )
        for memory, rank in islice(_iterate_loaded(result, ranked), MAX_LISTED_CANDIDATES)
    ]
    others = _list_unloaded(state)[: MAX_LISTED_CANDIDATES - len(listed)]
    for position, memory in zip(others.tolist(), state.describe(others), strict=True):
        reason, replaced_by = state.explain_unloaded(position)
        listed.append((*_encode_scores(memory), None, None, reason, replaced_by, None))
    hit_counts = {name: len(hits) for name, hits in state.hits_by_arm.items()}
    return {
        "arms": hit_counts | ({"turns": len(state.scored_turns)} if state.scored_turns else {}),
        "timings": dict(state.report.milliseconds),
        "candidates": listed,
        "omitted": len(state.candidates) + len(state.scored_turns) - len(listed),
    }


def _iterate_loaded(
    result: RecallResult, ranked: Iterable[ScoredMemory]
) -> Iterator[tuple[ScoredMemory, int | None]]:
    """Each loaded candidate once: those of the answer, other ranked ones, and turns."""
    seen_ids = set[UUID]()
    returned = ((hit.scored, rank) for rank, hit in enumerate(result.hits, start=1))
    others = ((memory, None) for memory in chain(ranked, result.state.scored_turns))
    for memory, rank in chain(returned, others):
        if memory.id not in seen_ids:
            seen_ids.add(memory.id)
            yield memory, rank


def _list_unloaded(state: RecallState) -> IntArray:
    """The positions of the candidates that were not loaded but are known, best first."""
    is_known = state.facts.records["doc"] == state.candidates.docs
    is_known[state.loaded] = False
    positions = np.flatnonzero(is_known)
    return positions[np.argsort(-state.candidates.scores[positions], kind="stable")]


def _encode_scores(memory: ScoredMemory) -> tuple[Any, ...]:
    """The parts of a candidate's score."""
    scores = {name: round(score, 5) for name, score in memory.raw_scores.items()}
    hits_by_arm = {
        name: (rank, scores[name]) if name in scores else (rank,)
        for name, rank in memory.arm_ranks.items()
    }
    hops = [(hop.source, hop.kind, round(hop.contribution, 5)) for hop in memory.hops]
    return (
        memory.id,
        round(memory.score, 5),
        round(memory.base_score, 5),
        round(memory.fused_score, 5),
        hits_by_arm,
        memory.factors,
        hops,
    )


def _encode_outcome(state: RecallState, memory_id: UUID, rank: int | None) -> tuple[Any, ...]:
    """The rank of a candidate, its similarity to others, and why it is not in the answer."""
    max_similarity = state.similarities.get(memory_id)
    similarity = round(max_similarity, 4) if max_similarity else None
    if rank is not None:
        return rank, similarity, None, None
    rejection = state.rejections.get(memory_id, REJECTED_BY_LIMIT)
    return None, similarity, rejection.reason, rejection.replaced_by


def decode_trace(stored_trace: Mapping[str, Any]) -> dict[str, Any]:
    """A result as `build_trace` encodes it, with a name for each part."""
    return {
        **stored_trace,
        "candidates": [_decode_candidate(candidate) for candidate in stored_trace["candidates"]],
        "deliveries": [
            PreflowOutcome(*delivery)._asdict() for delivery in stored_trace["deliveries"]
        ],
        "layers": [
            {"name": name, "tokens": tokens, "budget_tokens": budget}
            for name, tokens, budget in stored_trace["layers"]
        ],
    }


_CANDIDATE_FIELDS = (
    *("id", "score", "base", "fused", "arms", "factors", "hops"),
    *("rank", "similarity", "rejection_reason", "rejected_for", "position"),
)
"""The parts of an encoded candidate, in their order."""


def _decode_candidate(encoded: Sequence[Any]) -> dict[str, Any]:
    candidate = dict(zip(_CANDIDATE_FIELDS, encoded, strict=True))
    return candidate | {
        "type": "turn" if "turns" in candidate["arms"] else "memory",
        "arms": {
            name: dict(zip(("rank", "score"), hit, strict=False))
            for name, hit in candidate["arms"].items()
        },
        "hops": [
            {"source": source, "type": kind, "contribution": lent}
            for source, kind, lent in candidate["hops"]
        ],
    }

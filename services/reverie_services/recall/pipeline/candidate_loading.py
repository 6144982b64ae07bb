"""Loads the candidates of a recall, and what replaced them, with the factors of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from reverie.domain.retrieval.candidates import (
    NO_NAMED_CANDIDATES,
    NamedCandidates,
    RecallCandidate,
    ScoredMemory,
)
from reverie.domain.retrieval.scoring import compute_factors, compute_text_factors
from reverie.domain.retrieval.succession import find_successors
from reverie_services.recall.pipeline.retrievers import Retriever
from reverie_services.recall.pipeline.stage_runner import StageOutcome, run_stage
from reverie_services.recall.pipeline.state import RecallState

LOADING_SHARE = 0.8
"""The share of a recall's timeout by which all candidates must be loaded."""
MAX_SUCCESSION = 4
"""So many successors of a memory are looked for beyond those that were found."""


async def load_candidates(
    state: RecallState,
    retriever: Retriever,
    ids: Sequence[UUID],
    by_name: NamedCandidates = NO_NAMED_CANDIDATES,
) -> StageOutcome[dict[UUID, RecallCandidate]]:
    nothing: dict[UUID, RecallCandidate] = {}
    work = retriever.load_candidates(ids, by_name) if ids or by_name.ids else None
    return await run_stage("store", state.deadline.remaining(LOADING_SHARE), work, nothing)


def add_candidates(
    state: RecallState, loaded: Mapping[UUID, RecallCandidate], retriever: Retriever
) -> RecallState:
    """Adds loaded candidates with the factors of their facts and texts."""
    question, half_lives = state.parsed_question, retriever.deps.settings.half_lives
    factors = {
        memory_id: {
            **compute_factors(candidate.facts, question, state.now, half_lives),
            **compute_text_factors(candidate.content, question, state.speakers),
        }
        for memory_id, candidate in loaded.items()
    }
    return replace(
        state,
        candidates={**state.candidates, **loaded},
        factors={**state.factors, **factors},
    )


async def load_successors(state: RecallState, retriever: Retriever) -> RecallState:
    """Loads what replaced a candidate but was not found, or not near enough to be loaded."""
    sought: set[UUID] = set()
    for _ in range(MAX_SUCCESSION):
        newer = set(find_successors(state.candidates).values())
        missing = newer - state.candidates.keys() - sought
        if not missing:
            break
        loaded = await load_candidates(state, retriever, sorted(missing))
        sought |= missing
        unfound = loaded.value.keys() - {memory.id for memory in state.found}
        state = replace(
            state,
            found=[*state.found, *(ScoredMemory(id, 0.0, {"graph": 1}) for id in sorted(unfound))],
            skipped=state.skipped - loaded.value.keys(),
            report=state.report.with_outcomes(loaded),
        )
        state = add_candidates(state, loaded.value, retriever)
    return state

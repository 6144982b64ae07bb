"""The recall pipeline: retrieve, expand, score, rerank and select, over one immutable state."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Overloaded
from reverie.domain.core.kinds import ANCHOR_KINDS
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import AnswerEdge, RankedHit, assemble_answer
from reverie.domain.retrieval.candidates import (
    NamedCandidates,
    NeighbourEdge,
    Rejection,
    ScoredMemory,
    SearchHit,
    TurnHit,
    apply_factors,
    sort_by_score,
    with_score,
)
from reverie.domain.retrieval.fusion import find_unembedded, fuse_arms, rescore_with_arm
from reverie.domain.retrieval.graph_expansion import expand_neighbours
from reverie.domain.retrieval.question_parsing import (
    MAX_PARSED_CHARS,
    extract_project_mentions,
    parse_question,
)
from reverie.domain.retrieval.scoring import (
    compute_score_threshold,
    plan_loading,
)
from reverie.domain.retrieval.selection import POOL_FACTOR, select_memories
from reverie.domain.retrieval.speakers import find_speakers
from reverie.domain.retrieval.succession import find_successors
from reverie.domain.text.index_terms import expand_query_text
from reverie.inference.sparse_encoder import WordWeights
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.pipeline.candidate_loading import (
    LOADING_SHARE,
    add_candidates,
    load_candidates,
    load_successors,
)
from reverie_services.recall.pipeline.retrievers import Retriever, open_retriever
from reverie_services.recall.pipeline.stage_runner import Deadline, run_stage
from reverie_services.recall.pipeline.state import (
    ArmWeights,
    RecallQuestion,
    RecallResult,
    RecallState,
    rate_relevance,
)
from reverie_services.recall.query_expansion import NO_EXPANSION

MAX_RERANKED = 20
FIRST_LOAD_FACTOR = 4
"""Of what the arms found, this many times the pool of the answer is loaded first."""
MIN_VOCABULARY_SHARE = 0.05
"""The smallest weight of vectors: a guess is better than nothing if words find nothing."""

EXPANSION_SHARE, RETRIEVAL_SHARE, RESCORING_SHARE, GRAPH_SHARE = 0.25, 0.5, 0.55, 0.6
"""Shares of a recall's timeout by which its stages must be over; the last stage has the rest."""


async def recall(
    deps: RecallPipelineDependencies, principal: Principal, question: RecallQuestion
) -> RecallResult:
    """Answers a question. A stage that fails or is late is named in `degraded`.

    Raises `Overloaded` if too many recalls are running.
    """
    arrived = monotonic()
    try:
        async with deps.limiter.acquire():
            started = monotonic()
            deadline = Deadline(started, deps.settings.timeout - (started - arrived))
            retriever = open_retriever(deps, principal, question)
            state = await expand_query(start_recall(question, deadline), deps, principal)
            state = await retrieve(state, retriever)
            state = await expand_and_load(state, retriever)
            state = score(state)
            state = await rerank(state, deps)
            state = select(state, deps.settings.mmr_lambda)
            result = await load_result(state, retriever)
    except Overloaded:
        deps.metrics.count_rejection()
        raise
    deps.metrics.observe_stages(result.state.report.milliseconds)
    return result


def start_recall(question: RecallQuestion, deadline: Deadline) -> RecallState:
    """The state before anything is searched."""
    now = question.as_of or datetime.now(UTC)
    text, projects = extract_project_mentions(question.text, question.search_filter.scopes)
    return RecallState(question, deadline, now, (text,), parse_question(text, now, projects))


async def expand_query(
    state: RecallState, deps: RecallPipelineDependencies, principal: Principal
) -> RecallState:
    """Adds rephrasings and likely kinds from a language model, if one is set."""
    max_seconds = deps.settings.query_expansion_timeout
    if deps.query_expander is None or not max_seconds:
        return state
    outcome = await run_stage(
        "rephrase",
        min(max_seconds, state.deadline.remaining(EXPANSION_SHARE)),
        deps.query_expander.expand(principal, state.question.text),
        NO_EXPANSION,
    )
    parsed = state.parsed_question
    kinds = parsed.preferred_kinds | outcome.value.kinds
    return replace(
        state,
        texts=(*state.texts, *outcome.value.questions),
        parsed_question=replace(parsed, preferred_kinds=kinds),
        report=state.report.with_outcomes(outcome),
    )


async def retrieve(state: RecallState, retriever: Retriever) -> RecallState:
    """Runs the retrieval arms concurrently and fuses the memories that they find."""
    words = expand_query_text(" ".join(state.texts))
    timeout = state.deadline.remaining(RETRIEVAL_SHARE)
    no_hits: list[SearchHit] = []
    no_turns: list[TurnHit] = []
    no_weights: WordWeights | None = None
    turn_search = retriever.search_turns(words) if state.question.include_turns else None
    by_words, by_vectors, turns, word_weights = await asyncio.gather(
        run_stage("words", timeout, retriever.search_words(words), no_hits),
        run_stage("meaning", timeout, retriever.search_vectors(state.texts), no_hits),
        run_stage("turns", timeout, turn_search, no_turns),
        run_stage("sparse", timeout, retriever.encode_question(state.texts[0]), no_weights),
    )
    deps, hits_by_arm = retriever.deps, {"words": by_words.value, "meaning": by_vectors.value}
    # The vector search has looked up the tenant's model by now.
    weights = compute_arm_weights(deps, retriever.principal.tenant, state.question.text)
    unembedded = find_unembedded(by_words.value, by_vectors.value)
    boost = sum(weights.arms.values()) / weights.arms["words"] if weights.arms["words"] else 1.0
    return replace(
        state,
        weights=weights,
        word_weights=word_weights.value,
        hits_by_arm=hits_by_arm,
        turns=turns.value,
        boosts=dict.fromkeys(unembedded, boost),
        found=fuse_arms(hits_by_arm, weights.arms, deps.settings.fusion),
        report=state.report.with_outcomes(by_words, by_vectors, turns, word_weights),
    )


def compute_arm_weights(deps: RecallPipelineDependencies, tenant: int, text: str) -> ArmWeights:
    """The configured weights, times the share of the question's tokens that each model knows."""
    settings, text = deps.settings, text[:MAX_PARSED_CHARS]
    counter = deps.model_manager.get_counter(deps.embedding_models.get_cached(tenant).name)
    vocabulary_share = max(MIN_VOCABULARY_SHARE, counter.vocabulary_share(text))
    return ArmWeights(
        {**settings.arm_weights, "meaning": settings.arm_weights["meaning"] * vocabulary_share},
        settings.sparse_weight * deps.model_manager.sparse_counter.vocabulary_share(text),
    )


async def expand_and_load(state: RecallState, retriever: Retriever) -> RecallState:
    """Adds neighbours in the graph, and loads the candidates; the best while the graph is read."""
    pool_size = state.question.limit * POOL_FACTOR
    first_ids = [memory.id for memory in state.found[: FIRST_LOAD_FACTOR * pool_size]]
    expanded, first = await asyncio.gather(
        _expand_graph(state, retriever), load_candidates(state, retriever, first_ids)
    )
    texts = (candidate.content for candidate in first.value.values())
    expanded = replace(
        expanded,
        speakers=find_speakers(texts, state.parsed_question.people),
        report=expanded.report.with_outcomes(first),
    )
    state = add_candidates(expanded, first.value, retriever)
    return await _load_rest(state, retriever, frozenset(first_ids))


async def _load_rest(
    state: RecallState, retriever: Retriever, loaded_ids: frozenset[UUID]
) -> RecallState:
    """Loads those others whose factors could lift them into the pool of the answer."""
    pool_size = state.question.limit * POOL_FACTOR
    threshold = compute_score_threshold(score(state).ranked, state.candidates, pool_size)
    plan = plan_loading(
        (memory for memory in state.found if memory.id not in loaded_ids),
        threshold,
        state.parsed_question,
        state.boosts,
    )
    by_name = NamedCandidates(plan.to_load_if_named, state.parsed_question.names)
    rest = await load_candidates(state, retriever, plan.to_load, by_name)
    skipped = {*plan.to_skip, *plan.to_load_if_named} - rest.value.keys()
    report = state.report.with_outcomes(rest)
    state = replace(state, skipped=frozenset(skipped), report=report)
    return await load_successors(add_candidates(state, rest.value, retriever), retriever)


async def _rescore(state: RecallState, retriever: Retriever) -> RecallState:
    """Rescores what was found by the sparse model, if there is one."""
    if not state.word_weights or not state.found:
        return state
    ids = [memory.id for memory in state.found]
    timeout = state.deadline.remaining(RESCORING_SHARE)
    no_hits: list[SearchHit] = []
    search = retriever.search_sparse(state.word_weights, ids)
    rescored = await run_stage("sparse", timeout, search, no_hits)
    return replace(
        state,
        hits_by_arm={**state.hits_by_arm, "sparse": rescored.value},
        found=rescore_with_arm(
            state.found,
            "sparse",
            rescored.value,
            state.weights.sparse,
            retriever.deps.settings.fusion,
            {hit.id for hit in rescored.value if hit.long},
        ),
        report=state.report.with_outcomes(rescored),
    )


async def _expand_graph(state: RecallState, retriever: Retriever) -> RecallState:
    """Walks the graph from the rescored memories while that can change the answer."""
    state = await _rescore(state, retriever)
    max_seeds, pool_size = retriever.deps.settings.hop_seeds, state.question.limit * POOL_FACTOR
    seeds, seen = [memory.id for memory in state.found[:max_seeds]], set[UUID]()
    for hop in range(state.question.depth):
        if not seeds:
            break
        timeout = state.deadline.remaining(GRAPH_SHARE)
        no_edges: list[NeighbourEdge] = []
        edges = await run_stage("graph", timeout, retriever.load_edges_around(seeds), no_edges)
        intent = state.parsed_question.intent
        found = expand_neighbours(state.found, edges.value, intent, only_new=hop > 0)
        state = replace(state, found=found, report=state.report.with_outcomes(edges))
        seen.update(seeds)
        # Only a neighbour that is in the pool can still lend a part of its score.
        seeds = [
            memory.id
            for memory in found[:pool_size]
            if memory.id not in seen and not memory.raw_scores
        ][:max_seeds]
    return state


def score(state: RecallState) -> RecallState:
    """Multiplies each score by the factors of its memory, and rejects what may not be answered."""
    missing = "not read in time" if "store" in state.report.degraded else "filter"
    accepts_anchors = state.question.search_filter.kinds is not None
    ranked: list[ScoredMemory] = []
    rejections = dict(state.rejections)
    for memory in state.found:
        candidate = state.candidates.get(memory.id)
        if candidate is None:
            reason = "score" if memory.id in state.skipped else missing
        elif candidate.facts.kind in ANCHOR_KINDS and not accepts_anchors:
            reason = "anchor"
        else:
            factors = state.factors[memory.id]
            if memory.id in state.boosts:
                factors = {**factors, "unseen": state.boosts[memory.id]}
            scored = apply_factors(memory, factors)
            if scored.factors.get("confidence", 1.0) >= state.question.min_confidence:
                ranked.append(scored)
                continue
            reason = "confidence"
        rejections[memory.id] = Rejection(reason)
    return replace(state, ranked=sort_by_score(ranked), rejections=rejections)


async def rerank(state: RecallState, deps: RecallPipelineDependencies) -> RecallState:
    """Reorders the first memories with a cross-encoder, if one is set.

    They keep the same set of scores, so that they stay above the rest.
    """
    first = state.ranked[:MAX_RERANKED]
    if deps.reranker is None or len(first) < 2:
        return state
    texts = [state.candidates[memory.id].content for memory in first]
    outcome = await run_stage(
        "rerank",
        min(deps.settings.rerank_timeout, state.deadline.remaining(LOADING_SHARE)),
        deps.reranker.order(state.question.text, texts),
        list(range(len(first))),
    )
    reordered = [
        with_score(first[index], memory.score)
        for index, memory in zip(outcome.value, first, strict=True)
    ]
    ranked = sort_by_score([*reordered, *state.ranked[MAX_RERANKED:]])
    return replace(state, ranked=ranked, report=state.report.with_outcomes(outcome))


def select(state: RecallState, mmr_lambda: float) -> RecallState:
    """Selects the memories of the answer; more than its limit if turns or a budget follow."""
    question = state.question
    selection = select_memories(
        state.ranked,
        state.candidates,
        state.parsed_question.only_names,
        question.limit,
        mmr_lambda,
        with_spares=question.include_turns or question.budget_tokens is not None,
    )
    return replace(
        state,
        ranked=selection.ranked,
        selected=selection.memories,
        similarities=selection.similarities,
        rejections={**state.rejections, **selection.rejections},
    )


async def load_result(state: RecallState, retriever: Retriever) -> RecallResult:
    """Loads the selected memories and their edges, and fits them and the turns into the budget."""
    question, ids = state.question, [memory.id for memory in state.selected]
    timeout = state.deadline.remaining()
    no_memories: dict[UUID, Memory] = {}
    no_edges: list[AnswerEdge] = []
    wants_edges = len(ids) > 1 and question.depth > 0
    loaded, edges = await asyncio.gather(
        run_stage("load", timeout, retriever.load_memories(ids) if ids else None, no_memories),
        run_stage(
            "edges", timeout, retriever.load_edges_among(ids) if wants_edges else None, no_edges
        ),
    )
    missing = Rejection("not read in time" if loaded.failed else "gone meanwhile")
    model = retriever.deps.embedding_models.get_cached(retriever.principal.tenant).name
    relevance = rate_relevance(state, model)
    hits = [
        RankedHit(memory, item, relevance=relevance[memory.id])
        for memory in state.selected
        if (item := loaded.value.get(memory.id))
    ]
    answer = assemble_answer(
        hits,
        state.turns,
        edges.value,
        question.limit,
        question.budget_tokens,
        retriever.deps.model_manager.counter.count,
        find_successors(state.candidates),
    )
    lost = {memory_id: missing for memory_id in ids if memory_id not in loaded.value}
    state = replace(
        state,
        scored_turns=answer.scored_turns,
        rejections={**state.rejections, **lost, **answer.rejections},
        report=state.report.with_outcomes(loaded, edges),
    )
    return RecallResult(answer.hits, answer.edges, answer.tokens, state)

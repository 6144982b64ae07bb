"""The recall pipeline: retrieve, expand, score, rerank and select, over one immutable state."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import monotonic, perf_counter
from uuid import UUID

import numpy as np

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Overloaded
from reverie.domain.core.ids import new_id
from reverie.domain.retrieval.answer import AnswerEdge, RankedHit, assemble_answer
from reverie.domain.retrieval.candidates import (
    NO_EDGES,
    NO_HITS,
    TurnHit,
    is_among,
    sort_memories,
    with_score,
)
from reverie.domain.retrieval.fusion import fuse_arms, rescore_with_arm
from reverie.domain.retrieval.graph_expansion import expand_named_nodes, expand_neighbours
from reverie.domain.retrieval.question_parsing import (
    MAX_PARSED_CHARS,
    extract_project_mentions,
    parse_question,
)
from reverie.domain.retrieval.selection import POOL_FACTOR, select_memories
from reverie.domain.text.index_terms import expand_query_text
from reverie.inference.sparse_encoder import MAX_QUERY_WORDS, WordWeights
from reverie.runtime.observability.tracing import current_trace_id
from reverie.store.search.embedding_models import TenantModel
from reverie_services.recall.dependencies import RecallPipelineDependencies
from reverie_services.recall.pipeline.recall_trace import build_trace
from reverie_services.recall.pipeline.retrievers import (
    Retriever,
    Vectors,
    load_model,
    open_retriever,
)
from reverie_services.recall.pipeline.scoring import (
    LOADING_SHARE,
    MAX_RERANKED,
    load_texts,
    rate_relevance,
    score,
)
from reverie_services.recall.pipeline.stage_runner import Deadline, run_stage
from reverie_services.recall.pipeline.state import (
    ArmWeights,
    RecallQuestion,
    RecallRecord,
    RecallResult,
    RecallState,
)
from reverie_services.recall.query_expansion import NO_EXPANSION

MIN_VOCABULARY_SHARE = 0.05
"""The smallest weight of vectors. Where words find nothing, a guess is better than nothing."""

EXPANSION_SHARE, EMBEDDING_SHARE, RETRIEVAL_SHARE, RESCORING_SHARE, GRAPH_SHARE = (
    0.25,
    0.4,
    0.5,
    0.55,
    0.6,
)
"""Shares of a recall's timeout by which its stages must be over; the last stage has the rest."""


async def recall_with_trace(
    deps: RecallPipelineDependencies,
    principal: Principal,
    question: RecallQuestion,
    session: UUID | None,
) -> RecallResult:
    """Runs `recall`; its trace is built and stored in the background."""
    record = await measure_recall(deps, principal, question, session)
    deps.trace_writer.add(principal.tenant, partial(build_trace, record))
    return record.result


async def measure_recall(
    deps: RecallPipelineDependencies,
    principal: Principal,
    question: RecallQuestion,
    session: UUID | None,
) -> RecallRecord:
    """Runs `recall`; returns it with what its trace will say."""
    started = perf_counter()
    result = await recall(deps, principal, question)
    elapsed = (perf_counter() - started) * 1000
    now, request_id = datetime.now(UTC), current_trace_id()
    fusion = deps.settings.fusion
    return RecallRecord(
        new_id(), request_id, now, principal, session, question, result, elapsed, fusion
    )


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
            state = await expand_query(start_recall(question, deadline), deps, principal)
            state, retriever = await retrieve(state, deps, principal)
            state = await expand(state, retriever)
            state = await load_texts(await score(state, retriever), retriever)
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
        partial(deps.query_expander.expand, principal, state.question.text),
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


async def retrieve(
    state: RecallState, deps: RecallPipelineDependencies, principal: Principal
) -> tuple[RecallState, Retriever]:
    """Encodes the question while its retriever opens, runs the arms, and fuses what they find."""
    question, words = state.question, expand_query_text(" ".join(state.texts))
    timeout = state.deadline.remaining(EMBEDDING_SHARE)
    no_vectors: Vectors = ()
    no_weights: WordWeights | None = None
    no_turns: list[TurnHit] = []
    is_current = question.as_of is None
    uses_sparse = is_current and deps.settings.sparse_weight and deps.model_manager.uses_sparse
    model = await load_model(deps, principal.tenant, timeout)
    embed = partial(_embed_question, deps, model.value, state.texts)
    encode = partial(_encode_question, deps, state.texts[0])
    can_embed = is_current and not model.failed and deps.model_manager.embeds
    opened, vectors, word_weights = await asyncio.gather(
        open_retriever(deps, principal, question, words, model.value, timeout),
        run_stage("meaning", timeout, embed if can_embed else None, no_vectors),
        run_stage("sparse", timeout, encode if uses_sparse else None, no_weights),
    )
    timeout, retriever = state.deadline.remaining(RETRIEVAL_SHARE), opened.value
    search_vectors = partial(retriever.search_vectors, vectors.value)
    search_turns = partial(retriever.search_turns, words)
    paths, labels = state.parsed_question.paths, state.parsed_question.entities
    walks_nodes = question.depth > 0 and (paths or labels)
    search_named = partial(retriever.load_edges_of_named, paths, labels)
    by_words, by_vectors, turns, named_edges = await asyncio.gather(
        run_stage("words", timeout, partial(retriever.search_words, words), NO_HITS),
        run_stage("meaning", timeout, search_vectors if len(vectors.value) else None, NO_HITS),
        run_stage("turns", timeout, search_turns if question.include_turns else None, no_turns),
        run_stage("graph", timeout, search_named if walks_nodes else None, NO_EDGES),
    )
    hits_by_arm = {"words": by_words.value, "meaning": by_vectors.value}
    weights = compute_arm_weights(deps, principal.tenant, question.text)
    state = replace(
        state,
        weights=weights,
        word_weights=word_weights.value,
        hits_by_arm=hits_by_arm,
        turns=turns.value,
        named_edges=named_edges.value,
        candidates=fuse_arms(hits_by_arm, weights.arms, deps.settings.fusion),
        report=state.report.with_outcomes(
            model, opened, vectors, word_weights, by_words, by_vectors, turns, named_edges
        ),
    )
    return state, retriever


async def _embed_question(
    deps: RecallPipelineDependencies, model: TenantModel, texts: tuple[str, ...]
) -> Vectors:
    """The vectors of the question and its rephrasings, by the tenant's model."""
    embedder = await deps.model_manager.get_embedder(model.name, model.probe)
    return list(await embedder.embed(texts))


async def _encode_question(deps: RecallPipelineDependencies, text: str) -> WordWeights | None:
    """The question as weighted words of the sparse model."""
    [word_weights] = await deps.model_manager.get_sparse_encoder().encode([text], MAX_QUERY_WORDS)
    return word_weights


def compute_arm_weights(deps: RecallPipelineDependencies, tenant: int, text: str) -> ArmWeights:
    """The configured weights, times the share of the question's tokens that each model knows."""
    settings, text = deps.settings, text[:MAX_PARSED_CHARS]
    counter = deps.model_manager.get_counter(deps.embedding_models.get_cached(tenant).name)
    vocabulary_share = max(MIN_VOCABULARY_SHARE, counter.vocabulary_share(text))
    return ArmWeights(
        {**settings.arm_weights, "meaning": settings.arm_weights["meaning"] * vocabulary_share},
        settings.sparse_weight * deps.model_manager.sparse_counter.vocabulary_share(text),
    )


async def expand(state: RecallState, retriever: Retriever) -> RecallState:
    """Rescores by sparse words, and walks the graph while that can change the answer."""
    state = await _rescore(state, retriever)
    intent = state.parsed_question.intent
    walked = expand_named_nodes(state.candidates, state.named_edges, intent)
    state = replace(state, candidates=walked)
    max_seeds, pool_size = retriever.deps.settings.hop_seeds, state.question.limit * POOL_FACTOR
    seeds, seen = state.candidates.docs[:max_seeds], NO_HITS.docs
    for hop in range(state.question.depth):
        if not len(seeds):
            break
        timeout = state.deadline.remaining(GRAPH_SHARE)
        load = partial(retriever.load_edges_around, seeds)
        edges = await run_stage("graph", timeout, load, NO_EDGES)
        found = expand_neighbours(state.candidates, edges.value, intent, only_new=hop > 0)
        state = replace(state, candidates=found, report=state.report.with_outcomes(edges))
        seen = np.concatenate([seen, seeds])
        if "graph" not in found.ranks:
            break
        # The next hop starts from neighbours that may enter the answer: those in the pool.
        pool = found.docs[:pool_size]
        is_neighbour = found.ranks["graph"][:pool_size] > 0
        seeds = pool[is_neighbour & ~is_among(seen, pool)][:max_seeds]
    return state


async def _rescore(state: RecallState, retriever: Retriever) -> RecallState:
    """Rescores what was found by the sparse model, if there is one."""
    if not state.word_weights or not len(state.candidates):
        return state
    timeout = state.deadline.remaining(RESCORING_SHARE)
    search = partial(retriever.search_sparse, state.word_weights, state.candidates.docs)
    rescored = await run_stage("sparse", timeout, search, NO_HITS)
    return replace(
        state,
        hits_by_arm={**state.hits_by_arm, "sparse": rescored.value},
        candidates=rescore_with_arm(
            state.candidates,
            "sparse",
            rescored.value,
            state.weights.sparse,
            retriever.deps.settings.fusion,
        ),
        report=state.report.with_outcomes(rescored),
    )


async def rerank(state: RecallState, deps: RecallPipelineDependencies) -> RecallState:
    """Reorders the first memories with a cross-encoder, if one is set.

    The scores stay where they are and the memories change places, so all stay above the rest.
    """
    first = state.ranked[:MAX_RERANKED]
    if deps.reranker is None or len(first) < 2:
        return state
    texts = [state.contents[memory.id] for memory in first]
    outcome = await run_stage(
        "rerank",
        min(deps.settings.rerank_timeout, state.deadline.remaining(LOADING_SHARE)),
        partial(deps.reranker.order, state.question.text, texts),
        list(range(len(first))),
    )
    reordered = [
        with_score(first[index], memory.score)
        for index, memory in zip(outcome.value, first, strict=True)
    ]
    ranked = sort_memories([*reordered, *state.ranked[MAX_RERANKED:]])
    return replace(state, ranked=ranked, report=state.report.with_outcomes(outcome))


def select(state: RecallState, mmr_lambda: float) -> RecallState:
    """Selects the memories of the answer; more than its limit if turns or a budget follow."""
    question = state.question
    selection = select_memories(
        state.ranked,
        state.contents,
        state.successors,
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
    """Loads the edges of the selected memories, and fits them and the turns into the budget."""
    question, ids = state.question, [memory.id for memory in state.selected]
    timeout = state.deadline.remaining()
    no_edges: list[AnswerEdge] = []
    wants_edges = len(ids) > 1 and question.depth > 0
    find_edges = partial(retriever.load_edges_among, ids, [memory.doc for memory in state.selected])
    edges = await run_stage("edges", timeout, find_edges if wants_edges else None, no_edges)
    relevance = rate_relevance(state, retriever.model.name)
    answer = assemble_answer(
        [
            RankedHit(memory, state.memories[memory.id], relevance=relevance[memory.id])
            for memory in state.selected
        ],
        state.turns,
        edges.value,
        question.limit,
        question.budget_tokens,
        retriever.deps.model_manager.counter.count,
        state.successors,
        question.text,
    )
    state = replace(
        state,
        scored_turns=answer.scored_turns,
        rejections={**state.rejections, **answer.rejections},
        report=state.report.with_outcomes(edges),
    )
    return RecallResult(answer.hits, answer.edges, answer.tokens, state)

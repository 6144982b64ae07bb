"""Scores candidates by their facts, then by the texts of those that can reach the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import numpy as np

from reverie.domain.core.kinds import ANCHOR_KINDS
from reverie.domain.core.memory import Memory, is_title_only
from reverie.domain.retrieval.candidates import ScoredMemory, find_positions, sort_by_score
from reverie.domain.retrieval.exact_name_match import select_occurring_names
from reverie.domain.retrieval.fusion import find_unembedded
from reverie.domain.retrieval.question_parsing import list_distinctive_words
from reverie.domain.retrieval.ranking_facts import (
    KINDS,
    NO_SUCCESSOR,
    WHOLE,
    FloatArray,
    IntArray,
    has_flag,
    list_ids,
)
from reverie.domain.retrieval.relevance import (
    Likeness,
    compute_length,
    compute_relevance,
    compute_word_share,
)
from reverie.domain.retrieval.scoring import (
    NAME_FACTOR,
    choose_distinct,
    compute_factors,
    compute_max_text_factor,
    compute_text_factors,
)
from reverie.domain.retrieval.selection import POOL_FACTOR
from reverie.domain.retrieval.speakers import find_speakers
from reverie.domain.retrieval.succession import (
    iterate_successors,
    map_successors,
    rank_successors_first,
)
from reverie.domain.text.index_terms import searched_text
from reverie_services.recall.pipeline.retrievers import Retriever
from reverie_services.recall.pipeline.stage_runner import run_stage
from reverie_services.recall.pipeline.state import NO_FACTS, RecallState

LOADING_SHARE = 0.8
"""The share of a recall's timeout by which all texts must be loaded."""
MAX_RERANKED = 20
MAX_SUCCESSION = 4
"""How far a chain of successors is followed from a memory that was found."""
PEOPLE_FACTOR = 4
"""If a question names people, this many times the pool is loaded, to see who of them speaks."""
_IS_ANCHOR = np.array([kind in ANCHOR_KINDS for kind in KINDS])


async def score(state: RecallState, retriever: Retriever) -> RecallState:
    """Multiplies the scores by the factors of the facts, and adds what replaced a candidate."""
    candidates, sought, facts = state.candidates, state.candidates.docs, NO_FACTS
    for succession in range(1 + MAX_SUCCESSION):
        timeout = state.deadline.remaining(LOADING_SHARE)
        work = partial(retriever.load_facts, sought) if len(sought) else None
        loaded = await run_stage("store", timeout, work, NO_FACTS)
        state = replace(state, report=state.report.with_outcomes(loaded))
        facts = facts.join(loaded.value)
        usable = loaded.value.records[loaded.value.passes]
        if succession > 0:
            candidates = candidates.add(np.intersect1d(sought, usable["doc"]))
        newer = usable["successor"][usable["successor"] != NO_SUCCESSOR]
        sought = np.setdiff1d(newer, candidates.docs) if len(newer) else newer
        if not len(sought):
            break
    facts = facts.align(candidates.docs)
    return _apply_facts(replace(state, candidates=candidates, facts=facts), retriever)


def _apply_facts(state: RecallState, retriever: Retriever) -> RecallState:
    records, passes, candidates = state.facts.records, state.facts.passes, state.candidates
    decay = retriever.deps.settings.decay
    factors = compute_factors(state.facts, state.parsed_question, state.now, decay)
    is_eligible = passes & (factors["confidence"].round(4) >= state.question.min_confidence)
    if state.question.search_filter.kinds is None:
        is_eligible &= ~_IS_ANCHOR[records["kind"]]
    weights = state.weights.arms
    boost = sum(weights.values()) / weights["words"] if weights.get("words") else 1.0
    is_unembedded = find_unembedded(candidates, ~passes | has_flag(records, WHOLE))
    factors["unseen"] = np.where(is_unembedded, boost, 1.0)
    return _compute_totals(replace(state, is_eligible=is_eligible), factors)


def _compute_totals(state: RecallState, factors: Mapping[str, FloatArray]) -> RecallState:
    """Multiplies each score by its factors, and ranks replaced memories below their successors."""
    totals = state.candidates.scores.copy()
    for values in factors.values():
        totals *= values
    ranked = rank_successors_first(totals, _find_successors(state), factors["superseded"])
    lifts = np.divide(ranked, totals, out=np.ones(len(totals)), where=totals > 0)
    return replace(state, factors={**factors, "successor": lifts}, totals=ranked)


def _find_successors(state: RecallState) -> IntArray:
    """The position of the successor of each candidate, if both may be answered."""
    successors = find_positions(state.candidates.docs, state.facts.records["successor"])
    is_usable = state.is_eligible & (successors >= 0) & state.is_eligible[successors]
    return np.where(is_usable, successors, -1)


async def load_texts(state: RecallState, retriever: Retriever) -> RecallState:
    """Loads the texts that can reach the pool of the answer, and applies their factors."""
    pool_size, people = state.question.limit * POOL_FACTOR, state.parsed_question.people
    eligible, hashes = np.flatnonzero(state.is_eligible), state.facts.records["hash"]
    order = eligible[sort_by_score(state.candidates.docs[eligible], state.totals[eligible])]
    first = choose_distinct(order, hashes, PEOPLE_FACTOR * pool_size if people else pool_size)
    # The factor of a speaker can lower the threshold, so nothing is chosen before it is known.
    rest = first[:0] if people else _choose_rest(state, first, pool_size)
    state = await _load(state, retriever, np.concatenate([first, rest]))
    speakers = find_speakers(state.contents.values(), people)
    state = _apply_texts(state, speakers)
    rest = _choose_rest(state, state.loaded, pool_size)
    if len(rest):
        state = _apply_texts(await _load(state, retriever, rest), speakers)
    return _rank_loaded(state, max(pool_size, MAX_RERANKED))


def _rank_loaded(state: RecallState, pool_size: int) -> RecallState:
    """Sorts what was loaded, and describes what can be selected: exact names look at all texts."""
    records, totals = state.facts.records[state.loaded], state.totals[state.loaded]
    loaded = state.loaded[np.lexsort((records["id_low"], records["id_high"], -totals))]
    pool = choose_distinct(loaded, state.facts.records["hash"], pool_size)
    described = loaded if state.parsed_question.only_names else pool
    successors = map_successors(state.facts.records[state.is_eligible])
    return replace(state, loaded=loaded, ranked=state.describe(described), successors=successors)


async def _load(state: RecallState, retriever: Retriever, positions: IntArray) -> RecallState:
    """Loads memories, what replaced them, and what they replaced."""
    wanted = np.zeros(len(state.candidates), np.bool_)
    wanted[positions] = True
    successors = _find_successors(state)
    old = np.flatnonzero(successors >= 0)
    for _ in range(MAX_SUCCESSION):
        linked = wanted[old] | wanted[successors[old]]
        wanted[old] |= linked
        wanted[successors[old]] |= linked
    wanted[state.loaded] = False
    positions = np.flatnonzero(wanted)
    ids = list_ids(state.facts.records[positions])
    timeout = state.deadline.remaining(LOADING_SHARE)
    no_memories: dict[UUID, Memory] = {}
    work = partial(retriever.load_memories, ids) if ids else None
    loaded = await run_stage("load", timeout, work, no_memories)
    is_loaded = np.array([memory_id in loaded.value for memory_id in ids], np.bool_)
    is_eligible = state.is_eligible.copy()
    # Those that could not be loaded were deleted meanwhile, or are late.
    is_eligible[positions[~is_loaded]] = False
    return replace(
        state,
        memories={**state.memories, **loaded.value},
        contents=state.contents
        | {
            id: searched_text(memory.content, memory.metadata)
            for id, memory in loaded.value.items()
        },
        loaded=np.concatenate([state.loaded, positions[is_loaded]]),
        is_eligible=is_eligible,
        report=state.report.with_outcomes(loaded),
    )


def _apply_texts(state: RecallState, speakers: frozenset[str]) -> RecallState:
    """Applies the factors of the loaded texts, if the question has any."""
    ids = list_ids(state.facts.records[state.loaded])
    names = select_occurring_names([state.contents[id] for id in ids], state.parsed_question.names)
    question = replace(state.parsed_question, names=names)
    if not (question.phrases or names or speakers):
        return state
    factors = dict(state.factors)
    factors.pop("successor", None)
    for row, memory_id in zip(state.loaded.tolist(), ids, strict=True):
        content = state.contents[memory_id]
        for name, factor in compute_text_factors(content, question, speakers).items():
            factors.setdefault(name, np.ones(len(state.candidates)))[row] = factor
    return _compute_totals(state, factors)


def _choose_rest(state: RecallState, scored: IntArray, pool_size: int) -> IntArray:
    """Chooses those besides `scored` that the factors of their texts could lift into the pool.

    Only memories that the word arm found can contain a name. If a question consists of names only,
    memories with such a name, and those that replaced them, rank first. Names that are merely
    words in a row are no reason: their words are rare, so a memory that has them is in the pool.
    """
    question, candidates = state.parsed_question, state.candidates
    is_other = state.is_eligible.copy()
    is_other[scored] = False
    pool = choose_distinct(
        scored[np.argsort(-state.totals[scored], kind="stable")],
        state.facts.records["hash"],
        pool_size,
    )
    distinct = len(np.unique(state.facts.records["hash"][pool]))
    threshold = state.totals[pool[-1]] if distinct >= pool_size else 0.0
    found_by_words = candidates.ranks.get("words", np.zeros(len(candidates), np.int32)) > 0
    highest = state.totals * compute_max_text_factor(question)
    if question.identifiers:
        highest = np.where(found_by_words, highest * NAME_FACTOR, highest)
    can_reach = highest > threshold if threshold else np.ones(len(candidates), np.bool_)
    if question.only_names:
        can_reach |= found_by_words
    return np.flatnonzero(is_other & can_reach)


def rate_relevance(state: RecallState, model: str) -> dict[UUID, float]:
    """Rates the selected memories by vectors of that model.

    A memory is at least as relevant as one that it replaced: it answers the same questions.
    """
    words = list_distinctive_words(state.texts[0])
    ratings = {memory.id: _rate_memory(state, memory, words, model) for memory in state.selected}
    successors = state.successors
    if not successors:
        return ratings
    ids = list_ids(state.facts.records[state.loaded])
    is_replaced = np.array([id in successors for id in ids], np.bool_)
    for memory in state.describe(state.loaded[is_replaced]):
        newer_ids = [id for id in iterate_successors(memory.id, successors) if id in ratings]
        if newer_ids:
            rating = ratings.get(memory.id) or _rate_memory(state, memory, words, model)
            ratings |= {id: max(ratings[id], rating) for id in newer_ids}
    return ratings


def _rate_memory(
    state: RecallState, memory: ScoredMemory, words: Sequence[str], model: str
) -> float:
    """A memory that the vector arm did not find is at most as near as its last hit."""
    content = state.contents[memory.id]
    if is_title_only(content):
        return 0.0
    cosine, vector_hits = memory.raw_scores.get("meaning"), state.hits_by_arm.get("meaning")
    if cosine is None and vector_hits and "unseen" not in memory.factors:
        cosine = float(vector_hits.scores[-1])
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

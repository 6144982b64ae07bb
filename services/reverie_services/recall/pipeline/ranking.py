"""The recall pipeline: retrieve, expand over the graph, score, rerank, and select."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Overloaded
from reverie.domain.core.kinds import ANCHOR_KINDS
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.diversity import diversify, tokenize
from reverie.domain.retrieval.exact_name_match import find_name_holders
from reverie.domain.retrieval.question_parsing import extract_project_mentions, parse_question
from reverie.domain.retrieval.ranking import (
    ScoredMemory,
    apply_factors,
    boost_named,
    demote_superseded,
    expand_neighbours,
    find_unembedded,
    fuse_arms,
    rescore_with_arm,
    sort_by_score,
    with_score,
)
from reverie.domain.retrieval.score_boosts import (
    compute_factors,
    compute_name_factor,
    compute_phrase_factor,
)
from reverie.domain.retrieval.speakers import compute_speaker_factor, find_speakers
from reverie.domain.text.index_terms import expand_query_text
from reverie.inference.sparse_encoder import WordWeights
from reverie.store.search import search
from reverie.store.search.search import NamedCandidates, NeighbourEdge, RecallCandidate, TurnHit
from reverie_services.recall.dependencies import RecallDependencies
from reverie_services.recall.pipeline.candidate_pruning import (
    LoadPlan,
    compute_score_threshold,
    plan_loading,
    split_prefetched,
)
from reverie_services.recall.pipeline.recall_result import (
    RecallExplanation,
    RecallQuestion,
    RecallResult,
)
from reverie_services.recall.pipeline.result_assembly import (
    AnswerEdge,
    RankedHit,
    Rejection,
    dedupe,
    filter_edges,
    fit_budget,
    merge_adjacent_turns,
    merge_turns,
    mmr_rejections,
    rejection_reasons,
    top_k,
)
from reverie_services.recall.pipeline.retrievers import (
    ZERO_WEIGHTS,
    Retriever,
    StageRunner,
    compute_arm_weights,
)
from reverie_services.recall.query_expansion import NO_EXPANSION

MAX_RERANKED = 20
POOL_FACTOR = 3
"""How many times the limit diversity chooses from."""

PREFETCH_FACTOR = 4
"""How many times what diversity chooses from is looked up before the graph has been walked."""

REJECTED_BY_SCORE = Rejection("score")

EXPANSION_DEADLINE, RETRIEVAL_DEADLINE, RESCORING_DEADLINE, GRAPH_DEADLINE, STORE_DEADLINE = (
    0.25,
    0.5,
    0.55,
    0.6,
    0.8,
)
"""Shares of a recall's time by which its stages must be over; the last has all that is left."""


async def recall(
    deps: RecallDependencies, principal: Principal, question: RecallQuestion
) -> RecallResult:
    """Never raises because an arm failed or was late; `degraded` names it.

    Raises `Overloaded` where too many recalls are under way.
    """
    try:
        async with deps.concurrency_limit.acquire() as timeout:
            result = await _run_stages(deps, principal, question, timeout)
    except Overloaded:
        deps.metrics.count_rejection()
        raise
    deps.metrics.observe_stages(result.explanation.stage_milliseconds)
    return result


async def _run_stages(
    deps: RecallDependencies, principal: Principal, question: RecallQuestion, timeout_seconds: float
) -> RecallResult:
    pipeline = _RecallPipeline(deps, principal, question, timeout_seconds)
    await pipeline.expand_query()
    turns, word_weights = await pipeline.retrieve()
    await asyncio.gather(pipeline.rescore_and_expand(word_weights), pipeline.prefetch())
    candidates = await pipeline.score()
    await pipeline.rerank(candidates)
    selection = pipeline.select(candidates)
    memories, edges = await asyncio.gather(
        pipeline.load_memories(selection), pipeline.load_edges(selection)
    )
    hits = merge_turns(memories, turns)
    selected, tokens_used = fit_budget(
        hits, question.limit, question.budget_tokens, deps.model_manager.counter.count
    )
    return pipeline.build_result(hits, selected, filter_edges(edges, selected), tokens_used)


class _RecallPipeline:
    """One recall under way: each step takes up what the one before it found."""

    def __init__(
        self, parts: RecallDependencies, who: Principal, question: RecallQuestion, seconds: float
    ) -> None:
        self._parts, self._who, self._question = parts, who, question
        self._now = question.as_of or datetime.now(UTC)
        self._sight = Retriever(parts, who, question.search_filter, question.agent, question.as_of)
        self._arms = StageRunner()
        self._seconds, self._begun = seconds, monotonic()
        asked, places = extract_project_mentions(question.text, question.search_filter.scopes)
        self._texts = [asked]
        self._found: list[ScoredMemory] = []
        self._ahead: frozenset[UUID] = frozenset()
        self._known: dict[UUID, RecallCandidate] = {}
        self._worths: dict[UUID, Mapping[str, float]] = {}
        self._unseen: frozenset[UUID] = frozenset()
        self._heard: frozenset[str] = frozenset()
        self._weights = ZERO_WEIGHTS
        self._story = RecallExplanation(parse_question(asked, self._now, places), {})

    def _seconds_left(self, share: float = 1.0) -> float:
        """The seconds until that share of the time is over."""
        return max(0.0, self._seconds * share - (monotonic() - self._begun))

    async def expand_query(self) -> None:
        """Asks a language model for other ways to put the question, where that is set."""
        rephraser, most = self._parts.query_expander, self._parts.settings.query_expansion_timeout
        if rephraser is None or not most:
            return
        seconds = min(most, self._seconds_left(EXPANSION_DEADLINE))
        asked = rephraser.expand(self._who.tenant, self._question.text)
        told = await self._arms.run("rephrase", seconds, asked, NO_EXPANSION)
        reading = self._story.parsed_question
        self._story.parsed_question = replace(
            reading, preferred_kinds=reading.preferred_kinds | told.kinds
        )
        self._texts += told.questions

    async def retrieve(self) -> tuple[list[TurnHit], WordWeights | None]:
        """Asks the arms side by side, and fuses the memories they bring.

        Answers the turns, and the weighted words of the question.
        """
        question, sight, ask = self._question, self._sight, self._arms.run
        words = expand_query_text(" ".join(self._texts))
        no_scored: list[search.SearchHit] = []
        no_turns: list[TurnHit] = []
        seconds = self._seconds_left(RETRIEVAL_DEADLINE)
        by_words, by_meaning, turns, weighed = await asyncio.gather(
            ask("words", seconds, sight.search_words(words), no_scored),
            ask(
                "meaning",
                seconds,
                None if question.as_of else sight.search_vectors(self._texts),
                no_scored,
            ),
            ask(
                "turns",
                seconds,
                sight.search_turns(words) if question.include_turns else None,
                no_turns,
            ),
            ask("sparse", seconds, self._encode_question(), None),
        )
        self._unseen = find_unembedded(by_words, by_meaning)
        # Only now is it known which model the tenant's meaning goes by.
        self._weights = compute_arm_weights(self._parts, self._who.tenant, question.text)
        self._story.weights = {**self._weights.arms, "sparse": self._weights.sparse}
        self._story.hits_by_arm = {"words": by_words, "meaning": by_meaning}
        self._found = fuse_arms(
            self._story.hits_by_arm, self._weights.arms, self._parts.settings.fusion
        )
        return turns, weighed

    def _encode_question(self) -> Awaitable[WordWeights | None] | None:
        """The question as the sparse model reads it; None where that is not to be asked."""
        if self._question.as_of or not self._parts.settings.sparse_weight:
            return None
        wanted = self._parts.model_manager.uses_sparse
        return self._sight.encode_question(self._texts[0]) if wanted else None

    async def rescore_and_expand(self, words: WordWeights | None) -> None:
        """Rates what was found by the weighted words, then walks the graph from the best of it."""
        await self._rescore_sparse(words)
        await self._expand_graph()

    async def prefetch(self) -> None:
        """Looks up what will most likely come among the best, while that is being told.

        What each is worth by itself hangs on no score, so that is reckoned then too.
        """
        likely = self._found[: PREFETCH_FACTOR * self._question.limit * POOL_FACTOR]
        self._ahead = frozenset([one.id for one in likely])
        self._known = await self._load_candidates(LoadPlan(likely, [], []))
        texts = (candidate.content for candidate in self._known.values())
        self._heard = find_speakers(texts, self._story.parsed_question.people)
        self._worths = {
            one: self._score_factors(candidate) for one, candidate in self._known.items()
        }

    async def _rescore_sparse(self, words: WordWeights | None) -> None:
        """Rates what the other arms found by the weighted words of the question."""
        if not words or not self._found:
            return
        fusion, ids = self._parts.settings.fusion, [one.id for one in self._found]
        none: list[search.SearchHit] = []
        asked = self._sight.search_sparse(words, ids)
        hits = await self._arms.run("sparse", self._seconds_left(RESCORING_DEADLINE), asked, none)
        self._story.hits_by_arm = {**self._story.hits_by_arm, "sparse": hits}
        long = {hit.id for hit in hits if hit.long}
        self._found = rescore_with_arm(
            self._found, "sparse", hits, self._weights.sparse, fusion, long
        )

    async def _expand_graph(self) -> None:
        """Walks the graph outwards, hop by hop, as long as it can still change the answer."""
        intent = self._story.parsed_question.intent
        seeds, seen = self._found[: self._parts.settings.hop_seeds], set[UUID]()
        for hop in range(self._question.depth):
            if not seeds:
                return
            ids = [one.id for one in seeds]
            links: list[NeighbourEdge] = await self._arms.run(
                "graph", self._seconds_left(GRAPH_DEADLINE), self._sight.load_edges_around(ids), []
            )
            seen.update(ids)
            self._found = expand_neighbours(self._found, links, intent, only_new=hop > 0)
            seeds = self._next_seeds(seen)

    def _next_seeds(self, seen: set[UUID]) -> list[ScoredMemory]:
        """What this hop brought that may still lend something to see."""
        best = [
            one for one in self._found[: self._question.limit * POOL_FACTOR] if one.id not in seen
        ]
        return [one for one in best if not one.raw_scores][: self._parts.settings.hop_seeds]

    async def score(self) -> dict[UUID, RecallCandidate]:
        """Multiplies each score by what the memory is worth; drops what may not be answered.

        Beside what was looked up ahead, all that could still come among the best is looked up now.
        """
        self._story.candidates = self._found
        known = self._known
        near, rest = split_prefetched(self._found, self._ahead)
        weighed = list(self._score_all(near, known))
        bar = compute_score_threshold(weighed, known, self._question.limit * POOL_FACTOR)
        more = plan_loading(rest, bar, self._story.parsed_question, self._missing_vector_factor)
        known |= await self._load_candidates(more)
        named = [one for one in more.to_load_if_named if one.id in known]
        weighed += self._score_all([*more.to_load, *named], known)
        lost = [one.id for one in (*more.to_skip, *more.to_load_if_named) if one.id not in known]
        self._story.rejections.update(dict.fromkeys(lost, REJECTED_BY_SCORE))
        self._found = self._story.ranked = sort_by_score(weighed)
        return known

    async def _load_candidates(self, asked: LoadPlan) -> dict[UUID, RecallCandidate]:
        none: dict[UUID, RecallCandidate] = {}
        if not asked.to_load and not asked.to_load_if_named:
            return none
        holding = NamedCandidates(
            [one.id for one in asked.to_load_if_named], self._story.parsed_question.names
        )
        looked_up = self._sight.load_candidates([one.id for one in asked.to_load], holding)
        return await self._arms.run("store", self._seconds_left(STORE_DEADLINE), looked_up, none)

    def _missing_vector_factor(self, one: ScoredMemory) -> float:
        """By what is made good what a memory lost that had no vectors when it was looked for."""
        weights = self._weights.arms
        lost = one.id in self._unseen and weights["words"]
        return sum(weights.values()) / weights["words"] if lost else 1.0

    def _score_all(
        self, looked_up: Sequence[ScoredMemory], known: Mapping[UUID, RecallCandidate]
    ) -> Iterator[ScoredMemory]:
        for one in looked_up:
            candidate = known.get(one.id)
            why_not = (
                self._missing_reason() if candidate is None else self._exclusion_reason(candidate)
            )
            if candidate is None or why_not:
                self._story.rejections[one.id] = Rejection(why_not)
                continue
            found = self._score_memory(one, candidate)
            if self._is_confident_enough(found):
                yield found

    def _missing_reason(self) -> str:
        return "not read in time" if "store" in self._arms.degraded else "filter"

    def _exclusion_reason(self, candidate: RecallCandidate) -> str:
        anchor = candidate.facts.kind in ANCHOR_KINDS
        return "anchor" if anchor and self._question.search_filter.kinds is None else ""

    def _score_memory(self, one: ScoredMemory, candidate: RecallCandidate) -> ScoredMemory:
        worth = self._worths.get(one.id) or self._score_factors(candidate)
        if one.id in self._unseen:
            worth = {**worth, "unseen": self._missing_vector_factor(one)}
        return apply_factors(one, worth)

    def _score_factors(self, candidate: RecallCandidate) -> Mapping[str, float]:
        settings, reading = self._parts.settings, self._story.parsed_question
        worth = compute_factors(candidate.facts, reading, self._now, settings.half_lives)
        if reading.phrases:
            worth["phrase"] = compute_phrase_factor(candidate.content, reading.phrases)
        if reading.names:
            worth["name"] = compute_name_factor(candidate.content, reading.names)
        if self._heard:
            worth["speaker"] = compute_speaker_factor(candidate.content, self._heard)
        return worth

    def _is_confident_enough(self, one: ScoredMemory) -> bool:
        sure = one.factors.get("confidence", 1.0) >= self._question.min_confidence
        if not sure:
            self._story.rejections[one.id] = Rejection("confidence")
        return sure

    async def rerank(self, known: Mapping[UUID, RecallCandidate]) -> None:
        """The first hits in the order of a cross-encoder, where there is one and it is in time.

        They share out the scores they had, so that what follows them stays below them.
        """
        reranker, first = self._parts.reranker, self._found[:MAX_RERANKED]
        if reranker is None or len(first) < 2:
            return
        order = await self._arms.run(
            "rerank",
            min(self._parts.settings.rerank_timeout, self._seconds_left(STORE_DEADLINE)),
            reranker.order(self._question.text, [known[one.id].content for one in first]),
            list(range(len(first))),
        )
        moved = [
            with_score(first[place], stands.score)
            for place, stands in zip(order, first, strict=True)
        ]
        self._found = sort_by_score([*moved, *self._found[MAX_RERANKED:]])
        self._story.ranked = self._found

    def select(self, known: Mapping[UUID, RecallCandidate]) -> Sequence[ScoredMemory]:
        """Doubles collapsed, then the most telling that are not too alike, best first."""
        followed = {one: by for one in known if (by := known[one].facts.superseded_by)}
        named = find_name_holders(known, self._story.parsed_question.only_names, followed)
        self._found = demote_superseded(self._found, followed)
        self._found = self._story.ranked = boost_named(self._found, named)
        once, doubles = dedupe(self._found, known)
        self._story.rejections.update(doubles)
        pool = once[: self._question.limit * POOL_FACTOR]
        told = self._diversify(pool, known, bool(named))
        chosen = sorted(told, key=lambda one: one.id not in named)
        if self._selects_more_than_limit:
            return chosen
        kept, left = top_k(chosen, self._question.limit)
        self._story.rejections.update(left)
        return kept

    @property
    def _selects_more_than_limit(self) -> bool:
        """Whether what is chosen is more than is answered: turns or smaller ones may go first."""
        return self._question.include_turns or self._question.budget_tokens is not None

    def _diversify(
        self, pool: Sequence[ScoredMemory], known: Mapping[UUID, RecallCandidate], whole: bool
    ) -> list[ScoredMemory]:
        """As many as are answered; the `whole` pool where something else may take their places."""
        texts = [tokenize(known[one.id].content) for one in pool]
        scores, weight = [one.score for one in pool], self._parts.settings.mmr_lambda
        many = len(pool) if whole or self._selects_more_than_limit else self._question.limit
        order = diversify(scores, texts, many, weight)
        self._story.similarities, left = mmr_rejections(pool, texts, order)
        self._story.rejections.update(left)
        return [pool[place] for place, _ in order]

    async def load_memories(self, chosen: Sequence[ScoredMemory]) -> list[RankedHit]:
        """The memories, whole, in the order given."""
        ids = [one.id for one in chosen]
        if not ids:
            return []
        none: dict[UUID, Memory] = {}
        loaded = await self._arms.run(
            "load", self._seconds_left(), self._sight.load_memories(ids), none
        )
        late = "not read in time" if "load" in self._arms.degraded else "gone meanwhile"
        self._story.rejections.update((one, Rejection(late)) for one in ids if one not in loaded)
        return [RankedHit(one, loaded[one.id]) for one in chosen if one.id in loaded]

    async def load_edges(self, chosen: Sequence[ScoredMemory]) -> list[AnswerEdge]:
        """The edges among what was chosen."""
        ids = [one.id for one in chosen]
        none: list[AnswerEdge] = []
        if len(ids) < 2 or not self._question.depth:
            return none
        return await self._arms.run(
            "edges", self._seconds_left(), self._sight.load_edges_among(ids), none
        )

    def build_result(
        self, hits: Sequence[RankedHit], kept: list[RankedHit], edges: list[AnswerEdge], used: int
    ) -> RecallResult:
        """The answer, best first, with its story."""
        self._story.turns = [hit.scored for hit in hits if isinstance(hit.item, TurnHit)]
        self._story.rejections.update(rejection_reasons(hits, kept, self._question.limit))
        self._story.stage_milliseconds = self._arms.stage_milliseconds
        ordered = sorted(kept, key=lambda hit: (-hit.scored.score, hit.scored.id))
        ordered, beside = merge_adjacent_turns(ordered)
        self._story.rejections.update(beside)
        return RecallResult(ordered, edges, used, sorted(self._arms.degraded), self._story)

"""Recall: what the arms found, fused, spread over the graph, weighed, once each, in a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.diversity import diversify, tokens
from reverie.domain.errors import Crowded
from reverie.domain.kinds import ANCHORS
from reverie.domain.memory import Memory
from reverie.domain.named import holders
from reverie.domain.places import about
from reverie.domain.question import read
from reverie.domain.ranking import (
    Found,
    above_others,
    best_first,
    expand,
    fuse,
    moved_to,
    rescore,
    times,
    under_successors,
    unseen,
)
from reverie.domain.speakers import by_who_is_asked_about, heard
from reverie.domain.words import asking_text
from reverie.domain.worth import factors, holds_name, holds_phrase
from reverie.inference.sparse import Words
from reverie.recall.arms import Arms, Sight
from reverie.recall.hits import (
    Between,
    Cut,
    Hit,
    among,
    as_read,
    cut_away,
    first_of,
    once_each,
    passed_over,
    together,
    within,
)
from reverie.recall.parts import Parts
from reverie.recall.reach import Asked, bar_of, parted, still_asked
from reverie.recall.rephrase import AS_IT_IS
from reverie.recall.story import Answer, Question, Story
from reverie.recall.weights import NO_WEIGHTS, weights_of
from reverie.store import search
from reverie.store.search import Candidate, Holding, Link, TurnHit

RERANKED = 20
POOL = 3
"""How many times the limit diversity chooses from."""

AHEAD = 4
"""How many times what diversity chooses from is looked up before the graph has been walked."""

TOO_LOW = Cut("score")

REPHRASED, SEEDS, JUDGED, GRAPH, STORE = 0.25, 0.5, 0.55, 0.6, 0.8
"""Shares of a recall's time by which its stages must be over; the last has all that is left."""


async def recall(parts: Parts, who: Principal, question: Question) -> Answer:
    """Never raises because an arm failed or was late; `degraded` names it.

    Raises `Crowded` where too many recalls are under way.
    """
    try:
        async with parts.gate.turn() as seconds:
            answer = await _recall(parts, who, question, seconds)
    except Crowded:
        parts.meters.refused()
        raise
    parts.meters.took(answer.story.took)
    return answer


async def _recall(parts: Parts, who: Principal, question: Question, seconds: float) -> Answer:
    asking = _Asking(parts, who, question, seconds)
    await asking.rephrase()
    turns, words = await asking.seed()
    await asyncio.gather(asking.judge_and_spread(words), asking.look_ahead())
    known = await asking.weigh()
    await asking.rerank(known)
    chosen = asking.choose(known)
    memories, between = await asyncio.gather(asking.load(chosen), asking.edges(chosen))
    hits = together(memories, turns)
    kept, tokens_used = within(
        hits, question.limit, question.budget_tokens, parts.model.counter.count
    )
    return asking.answer(hits, kept, among(between, kept), tokens_used)


class _Asking:
    """One recall under way: each step takes up what the one before it found."""

    def __init__(self, parts: Parts, who: Principal, question: Question, seconds: float) -> None:
        self._parts, self._who, self._question = parts, who, question
        self._now = question.as_of or datetime.now(UTC)
        self._sight = Sight(parts, who, question.only, question.agent, question.as_of)
        self._arms = Arms()
        self._seconds, self._begun = seconds, monotonic()
        asked, places = about(question.text, question.only.scopes)
        self._texts = [asked]
        self._found: list[Found] = []
        self._ahead: frozenset[UUID] = frozenset()
        self._known: dict[UUID, Candidate] = {}
        self._worths: dict[UUID, Mapping[str, float]] = {}
        self._unseen: frozenset[UUID] = frozenset()
        self._heard: frozenset[str] = frozenset()
        self._weights = NO_WEIGHTS
        self._story = Story(read(asked, self._now, places), {})

    def _left(self, share: float = 1.0) -> float:
        """The seconds until that share of the time is over."""
        return max(0.0, self._seconds * share - (monotonic() - self._begun))

    async def rephrase(self) -> None:
        """Asks a language model for other ways to put the question, where that is set."""
        rephraser, most = self._parts.rephraser, self._parts.settings.rephrase_seconds
        if rephraser is None or not most:
            return
        seconds = min(most, self._left(REPHRASED))
        asked = rephraser.rephrase(self._who.tenant, self._question.text)
        told = await self._arms.ask("rephrase", seconds, asked, AS_IT_IS)
        reading = self._story.reading
        self._story.reading = replace(reading, wants=reading.wants | told.kinds)
        self._texts += told.questions

    async def seed(self) -> tuple[list[TurnHit], Words | None]:
        """Asks the arms side by side, and fuses the memories they bring.

        Answers the turns, and the weighted words of the question.
        """
        question, sight, ask = self._question, self._sight, self._arms.ask
        words = asking_text(" ".join(self._texts))
        no_scored: list[search.Scored] = []
        no_turns: list[TurnHit] = []
        seconds = self._left(SEEDS)
        by_words, by_meaning, turns, weighed = await asyncio.gather(
            ask("words", seconds, sight.words(words), no_scored),
            ask(
                "meaning",
                seconds,
                None if question.as_of else sight.meaning(self._texts),
                no_scored,
            ),
            ask("turns", seconds, sight.turns(words) if question.turns else None, no_turns),
            ask("sparse", seconds, self._weighed_words(), None),
        )
        self._unseen = unseen(by_words, by_meaning)
        # Only now is it known which model the tenant's meaning goes by.
        self._weights = weights_of(self._parts, self._who.tenant, question.text)
        self._story.weights = {**self._weights.arms, "sparse": self._weights.sparse}
        self._story.arms = {"words": by_words, "meaning": by_meaning}
        self._found = fuse(self._story.arms, self._weights.arms, self._parts.settings.fusion)
        return turns, weighed

    def _weighed_words(self) -> Awaitable[Words | None] | None:
        """The question as the sparse model reads it; None where that is not to be asked."""
        if self._question.as_of or not self._parts.settings.sparse_weight:
            return None
        wanted = self._parts.model.wants_sparse
        return self._sight.weighed_words(self._texts[0]) if wanted else None

    async def judge_and_spread(self, words: Words | None) -> None:
        """Rates what was found by the weighted words, then walks the graph from the best of it."""
        await self._judge(words)
        await self._spread()

    async def look_ahead(self) -> None:
        """Looks up what will most likely come among the best, while that is being told.

        What each is worth by itself hangs on no score, so that is reckoned then too.
        """
        likely = self._found[: AHEAD * self._question.limit * POOL]
        self._ahead = frozenset([one.id for one in likely])
        self._known = await self._looked_up(Asked(likely, [], []))
        texts = (candidate.content for candidate in self._known.values())
        self._heard = heard(texts, self._story.reading.people)
        self._worths = {one: self._worth(candidate) for one, candidate in self._known.items()}

    async def _judge(self, words: Words | None) -> None:
        """Rates what the other arms found by the weighted words of the question."""
        if not words or not self._found:
            return
        fusion, ids = self._parts.settings.fusion, [one.id for one in self._found]
        none: list[search.Scored] = []
        asked = self._sight.sparse(words, ids)
        hits = await self._arms.ask("sparse", self._left(JUDGED), asked, none)
        self._story.arms = {**self._story.arms, "sparse": hits}
        long = {hit.id for hit in hits if hit.long}
        self._found = rescore(self._found, "sparse", hits, self._weights.sparse, fusion, long)

    async def _spread(self) -> None:
        """Walks the graph outwards, hop by hop, as long as it can still change the answer."""
        intent = self._story.reading.intent
        seeds, seen = self._found[: self._parts.settings.hop_seeds], set[UUID]()
        for hop in range(self._question.depth):
            if not seeds:
                return
            ids = [one.id for one in seeds]
            links: list[Link] = await self._arms.ask(
                "graph", self._left(GRAPH), self._sight.around(ids), []
            )
            seen.update(ids)
            self._found = expand(self._found, links, intent, only_new=hop > 0)
            seeds = self._next_seeds(seen)

    def _next_seeds(self, seen: set[UUID]) -> list[Found]:
        """What this hop brought that may still lend something to see."""
        best = [one for one in self._found[: self._question.limit * POOL] if one.id not in seen]
        return [one for one in best if not one.raw][: self._parts.settings.hop_seeds]

    async def weigh(self) -> dict[UUID, Candidate]:
        """Multiplies each score by what the memory is worth; drops what may not be answered.

        Beside what was looked up ahead, all that could still come among the best is looked up now.
        """
        self._story.found = self._found
        known = self._known
        near, rest = parted(self._found, self._ahead)
        weighed = list(self._all_weighed(near, known))
        bar = bar_of(weighed, known, self._question.limit * POOL)
        more = still_asked(rest, bar, self._story.reading, self._lacking)
        known |= await self._looked_up(more)
        named = [one for one in more.named if one.id in known]
        weighed += self._all_weighed([*more.whole, *named], known)
        lost = [one.id for one in (*more.far, *more.named) if one.id not in known]
        self._story.left.update(dict.fromkeys(lost, TOO_LOW))
        self._found = self._story.ranked = best_first(weighed)
        return known

    async def _looked_up(self, asked: Asked) -> dict[UUID, Candidate]:
        none: dict[UUID, Candidate] = {}
        if not asked.whole and not asked.named:
            return none
        holding = Holding([one.id for one in asked.named], self._story.reading.names)
        looked_up = self._sight.candidates([one.id for one in asked.whole], holding)
        return await self._arms.ask("store", self._left(STORE), looked_up, none)

    def _lacking(self, one: Found) -> float:
        """By what is made good what a memory lost that had no vectors when it was looked for."""
        weights = self._weights.arms
        lost = one.id in self._unseen and weights["words"]
        return sum(weights.values()) / weights["words"] if lost else 1.0

    def _all_weighed(
        self, looked_up: Sequence[Found], known: Mapping[UUID, Candidate]
    ) -> Iterator[Found]:
        for one in looked_up:
            candidate = known.get(one.id)
            why_not = self._missing() if candidate is None else self._unwanted(candidate)
            if candidate is None or why_not:
                self._story.left[one.id] = Cut(why_not)
                continue
            found = self._weighed(one, candidate)
            if self._sure_enough(found):
                yield found

    def _missing(self) -> str:
        return "not read in time" if "store" in self._arms.degraded else "filter"

    def _unwanted(self, candidate: Candidate) -> str:
        anchor = candidate.facts.kind in ANCHORS
        return "anchor" if anchor and self._question.only.kinds is None else ""

    def _weighed(self, one: Found, candidate: Candidate) -> Found:
        worth = self._worths.get(one.id) or self._worth(candidate)
        if one.id in self._unseen:
            worth = {**worth, "unseen": self._lacking(one)}
        return times(one, worth)

    def _worth(self, candidate: Candidate) -> Mapping[str, float]:
        settings, reading = self._parts.settings, self._story.reading
        worth = factors(candidate.facts, reading, self._now, settings.half_lives)
        if reading.phrases:
            worth["phrase"] = holds_phrase(candidate.content, reading.phrases)
        if reading.names:
            worth["name"] = holds_name(candidate.content, reading.names)
        if self._heard:
            worth["speaker"] = by_who_is_asked_about(candidate.content, self._heard)
        return worth

    def _sure_enough(self, one: Found) -> bool:
        sure = one.factors.get("confidence", 1.0) >= self._question.min_confidence
        if not sure:
            self._story.left[one.id] = Cut("confidence")
        return sure

    async def rerank(self, known: Mapping[UUID, Candidate]) -> None:
        """The first hits in the order of a cross-encoder, where there is one and it is in time.

        They share out the scores they had, so that what follows them stays below them.
        """
        reranker, first = self._parts.reranker, self._found[:RERANKED]
        if reranker is None or len(first) < 2:
            return
        order = await self._arms.ask(
            "rerank",
            min(self._parts.settings.rerank_seconds, self._left(STORE)),
            reranker.order(self._question.text, [known[one.id].content for one in first]),
            list(range(len(first))),
        )
        moved = [
            moved_to(first[place], stands.score) for place, stands in zip(order, first, strict=True)
        ]
        self._found = best_first([*moved, *self._found[RERANKED:]])
        self._story.ranked = self._found

    def choose(self, known: Mapping[UUID, Candidate]) -> Sequence[Found]:
        """Doubles collapsed, then the most telling that are not too alike, best first."""
        followed = {one: by for one in known if (by := known[one].facts.superseded_by)}
        named = holders(known, self._story.reading.alone, followed)
        self._found = under_successors(self._found, followed)
        self._found = self._story.ranked = above_others(self._found, named)
        once, doubles = once_each(self._found, known)
        self._story.left.update(doubles)
        pool = once[: self._question.limit * POOL]
        told = self._most_telling(pool, known, bool(named))
        chosen = sorted(told, key=lambda one: one.id not in named)
        if self._open_ended:
            return chosen
        kept, left = first_of(chosen, self._question.limit)
        self._story.left.update(left)
        return kept

    @property
    def _open_ended(self) -> bool:
        """Whether what is chosen is more than is answered: turns or smaller ones may go first."""
        return self._question.turns or self._question.budget_tokens is not None

    def _most_telling(
        self, pool: Sequence[Found], known: Mapping[UUID, Candidate], whole: bool
    ) -> list[Found]:
        """As many as are answered; the `whole` pool where something else may take their places."""
        texts = [tokens(known[one.id].content) for one in pool]
        scores, weight = [one.score for one in pool], self._parts.settings.diversity
        many = len(pool) if whole or self._open_ended else self._question.limit
        order = diversify(scores, texts, many, weight)
        self._story.alike, left = passed_over(pool, texts, order)
        self._story.left.update(left)
        return [pool[place] for place, _ in order]

    async def load(self, chosen: Sequence[Found]) -> list[Hit]:
        """The memories, whole, in the order given."""
        ids = [one.id for one in chosen]
        if not ids:
            return []
        none: dict[UUID, Memory] = {}
        loaded = await self._arms.ask("load", self._left(), self._sight.load(ids), none)
        late = "not read in time" if "load" in self._arms.degraded else "gone meanwhile"
        self._story.left.update((one, Cut(late)) for one in ids if one not in loaded)
        return [Hit(one, loaded[one.id]) for one in chosen if one.id in loaded]

    async def edges(self, chosen: Sequence[Found]) -> list[Between]:
        """The edges among what was chosen."""
        ids = [one.id for one in chosen]
        none: list[Between] = []
        if len(ids) < 2 or not self._question.depth:
            return none
        return await self._arms.ask("edges", self._left(), self._sight.among(ids), none)

    def answer(
        self, hits: Sequence[Hit], kept: list[Hit], edges: list[Between], used: int
    ) -> Answer:
        """The answer, best first, with its story."""
        self._story.turns = [hit.found for hit in hits if isinstance(hit.item, TurnHit)]
        self._story.left.update(cut_away(hits, kept, self._question.limit))
        self._story.took = self._arms.took
        ordered = sorted(kept, key=lambda hit: (-hit.found.score, hit.found.id))
        ordered, beside = as_read(ordered)
        self._story.left.update(beside)
        return Answer(ordered, edges, used, sorted(self._arms.degraded), self._story)
